"""What a user reads of a survey and of a host's state."""

from __future__ import annotations

from ansible_collections.sparkring.cluster.plugins.plugin_utils import report

PLAN = {"host": "spark0", "position": 0, "ring": "home", "plan_digest": "sha256:0123456789abcdef"}
GOOD = {"id": "link.mtu", "subject": "link/cw_primary", "ok": True, "found": "9000", "fix": ""}
PULLED = {
    "id": "link.carrier",
    "subject": "link/cw_primary",
    "ok": False,
    "found": "no carrier on cable 0 to spark1",
    "fix": "check the cable",
}
UNREACHED = {"id": "pair.ping", "subject": "198.18.0.2", "ok": False, "found": "no answer", "fix": "check links"}


def test_a_host_as_planned() -> None:
    assert report.status_lines(PLAN, [], [GOOD]) == [
        "spark0: position 0 of home, plan 0123456789ab, as planned, 1/1 checks hold"
    ]


def test_a_pulled_cable_is_named_once_and_alone() -> None:
    changes = [{"id": f"route/198.18.{number}.0/24"} for number in range(4)]
    twin = {**PULLED, "subject": "link/cw_secondary"}
    assert report.status_lines(PLAN, changes, [GOOD, PULLED, twin, UNREACHED]) == [
        "spark0: position 0 of home, plan 0123456789ab, 4 objects differ (route/198.18.0.0/24, route/198.18.1.0/24, "
        "route/198.18.2.0/24, …), 1/4 checks hold",
        "  spark0: no carrier on cable 0 to spark1. To fix: check the cable.",
    ]


def test_other_findings_are_listed_up_to_three() -> None:
    assert report.status_lines(PLAN, [], [UNREACHED] * 5) == [
        "spark0: position 0 of home, plan 0123456789ab, as planned, 0/5 checks hold",
        *["  spark0: pair.ping 198.18.0.2: no answer. To fix: check links."] * 3,
        "  spark0: 2 more findings; verify lists all.",
    ]


def test_a_survey_shows_links_and_who_is_seen() -> None:
    survey = {
        "management": {"netdev": "enP7s7", "address": "192.0.2.10", "prefix": 24},
        "kernel": {"release": "6.17.0"},
        "links": [
            {
                "netdev": "enp1s0f0np0",
                "mac": "02:00:00:00:00:01",
                "carrier": True,
                "speed_mbps": 200000,
                "addresses": [],
            }
        ],
        "rdma": [{"device": "rocep1s0f0", "netdev": "enp1s0f0np0"}],
        "lldp": [{"netdev": "enp1s0f0np0", "chassis_name": "spark1", "port_descr": "enp1s0f1np1"}],
    }
    assert report.survey_lines({"spark0": survey}) == [
        "spark0: enP7s7 192.0.2.10, kernel 6.17.0",
        "  rocep1s0f0 enp1s0f0np0 02:00:00:00:00:01 up 200000 Mb/s, no address sees spark1 enp1s0f1np1",
    ]
