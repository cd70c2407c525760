"""The judgement of one function, on answers of devlink in the shapes of iproute2 5 and 6."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import hairpin_state
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.hairpin_state import judge
from ansible_collections.sparkring.cluster.plugins.module_utils.node import survey

from .ring import BDF, CW, bare

HAIRPIN = {
    "queue_size": 8192,
    "num_queues": 4,
    "steering_mode": "hmfs",
    "driver_restarts": 1,
    "restart_failed": False,
    "restart_owed": False,
}
GOOD: dict[str, Any] = {
    "hairpin": HAIRPIN,
    "eswitch": {"mode": "legacy", "inline-mode": "none", "encap-mode": "basic"},
    "hw_tc_offload": "on",
}


def altered(**changes: Any) -> dict[str, Any]:
    """A function in effect, but for the changes; those of the setting begin with ``hairpin_``."""
    made = copy.deepcopy(GOOD)
    for name, value in changes.items():
        if name in HAIRPIN:
            made["hairpin"][name] = value
        else:
            made[name] = value
    return made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "in-effect"),
        ({"driver_restarts": 9}, "in-effect"),
        ({"hw_tc_offload": "on [fixed]"}, "in-effect"),
        ({"hw_tc_offload": "off"}, "offload-off (hw-tc-offload is off)"),
        ({"driver_restarts": 0}, "pending (set, and the driver was not restarted since it was loaded)"),
        ({"restart_owed": True}, "pending (set, and the driver was not restarted since)"),
        ({"queue_size": 1024}, "default (4 queues of 1024, needed are 4 of 8192)"),
        ({"num_queues": 2}, "default (2 queues of 8192, needed are 4 of 8192)"),
        ({"queue_size": 1024, "hw_tc_offload": "off"}, "default (4 queues of 1024, needed are 4 of 8192)"),
        (
            {"driver_restarts": 0, "hw_tc_offload": "off"},
            "pending (set, and the driver was not restarted since it was loaded)",
        ),
        ({"restart_failed": True}, "failed (the driver's last restart failed)"),
        ({"restart_failed": True, "hw_tc_offload": None}, "failed (the driver's last restart failed)"),
        ({"queue_size": None}, "unknown (devlink does not show hairpin_queue_size)"),
        ({"num_queues": None}, "unknown (devlink does not show hairpin_num_queues)"),
        ({"driver_restarts": None}, "unknown (devlink does not show the count of driver restarts)"),
        ({"steering_mode": None}, "unknown (devlink does not show flow_steering_mode)"),
        ({"steering_mode": "dmfs"}, "unknown (flow_steering_mode is dmfs, needed is hmfs)"),
        ({"eswitch": {}}, "unknown (the eswitch's mode is not shown, needed is legacy)"),
        ({"eswitch": []}, "unknown (the eswitch's mode is not shown, needed is legacy)"),
        (
            {"eswitch": {"mode": "switchdev", "inline-mode": "none", "encap-mode": "basic"}},
            "unknown (the eswitch's mode is switchdev, needed is legacy)",
        ),
        (
            {"eswitch": {"mode": "legacy", "inline-mode": "link", "encap-mode": "basic"}},
            "unknown (the eswitch's inline-mode is link, needed is none)",
        ),
        (
            {"eswitch": {"mode": "legacy", "inline-mode": "none", "encap-mode": "none"}},
            "unknown (the eswitch's encap-mode is none, needed is basic)",
        ),
        ({"hw_tc_offload": "off [fixed]"}, "unknown (hw-tc-offload is off [fixed])"),
        ({"hw_tc_offload": "off [requested on]"}, "unknown (hw-tc-offload is off [requested on])"),
        ({"hw_tc_offload": None}, "unknown (ethtool does not show hw-tc-offload)"),
        ({"hairpin": None}, "unknown (devlink does not show hairpin_queue_size)"),
    ],
)
def test_states(changes: dict[str, Any], said: str) -> None:
    assert str(judge(altered(**changes), 8192, 4)) == said


def test_a_survey_of_an_earlier_version_is_unknown() -> None:
    kept = {name: HAIRPIN[name] for name in ("queue_size", "num_queues", "driver_restarts", "restart_failed")}
    said = str(judge({**GOOD, "hairpin": kept}, 8192, 4))
    assert said == "unknown (devlink does not show flow_steering_mode)"


PARAMETERS = [
    {"name": "hairpin_queue_size", "type": "driver-specific", "values": [{"cmode": "driverinit", "value": 8192}]},
    {"name": "hairpin_num_queues", "type": "driver-specific", "values": [{"cmode": "driverinit", "value": 4}]},
    {"name": "flow_steering_mode", "type": "driver-specific", "values": [{"cmode": "runtime", "value": "hmfs"}]},
]
COUNTS = {
    "stats": {
        "reload": {"driver_reinit": {"unspecified": 1}, "fw_activate": {"unspecified": 0, "no_reset": 0}},
        "remote_reload": {"driver_reinit": {"unspecified": 7}},
    }
}


def test_values_of_another_mode_and_the_remote_counter_do_not_count() -> None:
    found = hairpin_state.setting(PARAMETERS, COUNTS)
    assert (found["queue_size"], found["num_queues"], found["steering_mode"]) == (8192, 4, "hmfs")
    assert (found["driver_restarts"], found["restart_failed"]) == (1, False)
    runtime = [{"name": "hairpin_queue_size", "values": [{"cmode": "runtime", "value": 8192}]}]
    assert hairpin_state.setting(runtime, COUNTS)["queue_size"] is None
    assert hairpin_state.setting([], {"reload_failed": True})["restart_failed"]


@pytest.mark.parametrize("path", [(), ("stats",), ("stats", "reload"), ("stats", "reload", "driver_reinit")])
def test_a_counter_that_is_not_shown_is_unknown(path: tuple[str, ...]) -> None:
    shown: dict[str, Any] = copy.deepcopy(COUNTS)
    place = shown
    for name in path:
        place = place[name]
    place.clear()
    assert hairpin_state.setting(PARAMETERS, shown)["driver_restarts"] is None


@pytest.mark.parametrize(("value", "read"), [("1", 1), (True, None), (-1, None), (1.5, None), ("one", None), (0, 0)])
def test_only_a_count_is_a_counter(value: Any, read: int | None) -> None:
    shown = {"stats": {"reload": {"driver_reinit": {"unspecified": value}}}}
    assert hairpin_state.setting(PARAMETERS, shown)["driver_restarts"] == read


@pytest.mark.parametrize("old", [False, True])
def test_the_survey_holds_what_is_judged(tmp_path: Path, old: bool) -> None:
    card, _ = bare(tmp_path, old_iproute2=old)
    part = survey.take(card.host(), root=True)["devlink"][BDF[CW]]
    assert str(judge(part, 8192, 4)) == "default (2 queues of 1024, needed are 4 of 8192)"
    card.functions[BDF[CW]].shown.update(hairpin_num_queues=4, hairpin_queue_size=8192)
    card.functions[BDF[CW]].restarts = 1
    assert judge(survey.take(card.host(), root=True)["devlink"][BDF[CW]], 8192, 4).state == hairpin_state.IN_EFFECT


def test_no_devlink_no_answer(tmp_path: Path) -> None:
    card, _ = bare(tmp_path, broken={"devlink"})
    part = survey.take(card.host(), root=True)["devlink"][BDF[CW]]
    assert str(judge(part, 8192, 4)) == "unknown (devlink does not show hairpin_queue_size)"
