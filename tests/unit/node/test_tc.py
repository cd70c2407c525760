"""tc's JSON read back: both mask conventions, summary entries, and shapes that are not ours."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import tc

FIXTURES = Path(__file__).parents[2] / "fixtures/node"
RECORDED = ["tc-ingress-iproute2-6.1.json", "tc-ingress-set-masks.json"]


def recorded(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_relay_filter_is_read_whole(name: str) -> None:
    printed = recorded(name)
    entries = tc.entries(printed)
    assert len(entries) == len(printed) - 1, "the summary entry is skipped"
    assert tc.relay_filter(entries[0]) == {
        "tag": "0x88b5",
        "preference": 41,
        "handle": 1,
        "set_mac": "52:54:00:01:00:03",
        "set_tag": "0x0800",
        "egress": "enp1s0f0np0",
        "skip_sw": False,
        "in_hw": None,
        "extra": [],
    }


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("bit", range(48))
def test_every_bit_of_the_mac_is_compared(name: str, bit: int) -> None:
    entry = copy.deepcopy(tc.entries(recorded(name))[0])
    sound = tc.relay_filter(entry)
    keys = [key for action in entry["options"]["actions"] for key in action.get("keys", [])]
    key = keys[0] if bit < 32 else keys[1]
    key["val"] = f"{int(key['val'], 16) ^ (1 << (31 - bit % 32)):x}"
    changed = tc.relay_filter(entry)
    assert changed is not None and sound is not None and changed["set_mac"] != sound["set_mac"]


def test_a_key_elsewhere_in_the_header_makes_it_unreadable() -> None:
    entry = copy.deepcopy(tc.entries(recorded(RECORDED[0]))[0])
    entry["options"]["actions"][0]["keys"][0]["offset"] = 6
    fields = tc.relay_filter(entry)
    assert fields is not None and fields["set_mac"] == ""


@pytest.mark.parametrize(
    ("change", "extra"),
    [
        (lambda o: o["keys"].update(src_mac="52:54:00:00:00:01"), ["src_mac"]),
        (lambda o: o["actions"].append({"kind": "gact"}), ["actions"]),
        (lambda o: o["actions"][-1].update(mirred_action="mirror"), ["actions"]),
    ],
)
def test_odd_keys_and_actions_are_told(change: Any, extra: list[str]) -> None:
    entry = copy.deepcopy(tc.entries(recorded(RECORDED[0]))[0])
    change(entry["options"])
    fields = tc.relay_filter(entry)
    assert fields is not None and fields["extra"] == extra


def test_hardware_is_told_where_software_is_skipped() -> None:
    entry = copy.deepcopy(tc.entries(recorded(RECORDED[0]))[0])
    entry["options"].update(skip_sw=True, not_in_hw=True)
    fields = tc.relay_filter(entry)
    assert fields is not None and (fields["skip_sw"], fields["in_hw"]) == (True, False)
    entry["options"].update(in_hw=True)
    fields = tc.relay_filter(entry)
    assert fields is not None and fields["in_hw"] is True


def test_marker_rule_is_read_whole() -> None:
    (entry,) = tc.entries(recorded("tc-egress-iproute2-6.1.json"))
    assert tc.marker_rule(entry) == {"destination": "198.18.2.2", "tag": "0x88b5", "handle": 1, "extra": []}
    entry["options"]["keys"]["dst_port"] = 4790
    fields = tc.marker_rule(entry)
    assert fields is not None and fields["extra"] == ["match"]


@pytest.mark.parametrize(
    "entry",
    [
        {"protocol": "all", "pref": 41, "kind": "matchall", "options": {}},
        {"protocol": "ip", "pref": 41, "kind": "flower", "options": {"handle": 1, "keys": {}, "actions": []}},
        {"protocol": "[34997]", "pref": 41, "kind": "flower", "options": {"handle": 1, "keys": {}, "actions": []}},
    ],
)
def test_other_shapes_are_not_ours(entry: dict[str, Any]) -> None:
    assert tc.relay_filter(entry) is None
    assert tc.marker_rule(entry) is None
