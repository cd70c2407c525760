"""Bringing one host's functions into effect: the good way, every guard, every failure of a restart."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import (
    checks,
    fabric,
    hairpin,
    hairpin_journal,
    hairpin_run,
    lock,
    survey,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests import fake_card
from tests.fake_card import FakeCard
from tests.unit.node import ring

from .ring import BDF, CCW, CW, CW2, SOURCE, bare, boot, in_effect, live, set_up, states, stop_markers

RESTARTS = [f"devlink dev reload pci/{BDF[netdev]} action driver_reinit" for netdev in BDF]


def reloads(card: FakeCard) -> list[str]:
    return [line for line in card.log if "reload" in line]


def journal(card: FakeCard) -> dict[str, str]:
    return {name: entry.state for name, entry in (hairpin_journal.read(card.host()) or {}).items()}


# The good way ---------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True])
def test_functions_one_after_the_other_in_the_plans_order(tmp_path: Path, old: bool) -> None:
    card, plan = bare(tmp_path, old_iproute2=old)
    announced = live(card, plan, check=True)
    assert card.altering() == [] and journal(card) == {}
    assert announced.lines[0] == (
        "spark0 enp1s0f0np0 (cw_primary): default (2 queues of 1024, needed are 4 of 8192):"
        " would restart its driver, link down about 8 s"
    )
    done = live(card, plan)
    assert done.changes == announced.changes and len(done.changes) == 4
    assert reloads(card) == RESTARTS and card.truly() and in_effect(card, plan)
    assert set(journal(card).values()) == {"done"}
    entry = (hairpin_journal.read(card.host()) or {})[BDF[CW]]
    assert (entry.queue_size, entry.num_queues, entry.restarts, entry.firmware) == (1024, 2, 0, "28.45.4028")
    assert card.now < 60


def test_a_live_run_is_alone_on_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, plan = bare(tmp_path)
    held: list[bool] = []

    def event(_what: str) -> None:
        with pytest.raises(HostError, match=r"^a hairpin run "), lock.hold(card.host(), "test", wait=0):
            pass
        held.append(True)

    monkeypatch.setattr(card, "event", event)
    live(card, plan)
    assert len(held) > 4


def test_a_second_run_changes_nothing_and_asks_for_nobodys_leave(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    card.resources["qp"] = [{"ifname": "rocep1s0f0", "port": 1, "type": "RC", "pid": 77, "comm": "vllm"}]
    card.log.clear()
    assert live(card, plan).changes == [] and boot(card, plan).changes == []
    assert card.altering() == []


def test_only_what_is_missing_is_done(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    stop_markers(card)
    card.functions[BDF[CW]].offload = "off"
    card.functions[BDF[CCW]].probe()
    card.functions[BDF[CCW]].shown.update(fake_card.WANTED)
    assert states(card, plan) == ["offload-off", "in-effect", "pending", "in-effect"]
    card.log.clear()
    live(card, plan)
    assert reloads(card) == [RESTARTS[2]] and in_effect(card, plan)
    assert [line for line in card.log if "param set" in line] == []


def test_a_function_that_failed_is_restarted(tmp_path: Path) -> None:
    card, plan = bare(tmp_path, behaviour={BDF[CW]: fake_card.FAILS})
    with pytest.raises(HostError, match=r"^the restart of the driver of enp1s0f0np0 failed \(.*Input/output error\)"):
        live(card, plan)
    assert journal(card) == {BDF[CW]: "failed"} and states(card, plan)[0] == "failed"
    card.behaviour.clear()
    live(card, plan)
    assert in_effect(card, plan) and card.truly()


def test_a_host_that_does_not_relay_is_left_alone(tmp_path: Path) -> None:
    card, _ = bare(tmp_path)
    for plan in (ring.host_plan("mlx5"), ring.host_plan("virtual")):
        assert live(card, plan).changes == [] and card.altering() == []
        assert hairpin.refusals(card.host(), plan) == []


def test_what_a_restart_takes_comes_back(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    before = card.memory()
    stop_markers(card)
    for function in card.functions.values():
        function.probe()
    live(card, plan)
    after = card.memory()
    for kind in ("links", "routes", "neighbours", "qdiscs", "filters", "running", "active"):
        assert after[kind] == before[kind], kind
    assert fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, False).changes == []


def test_the_journal_is_written_before_the_change(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    seen = []

    def before(bdf: str, words: list[str]) -> None:
        seen.append(words[2])
        assert journal(card)[bdf] == "started", words

    card.before_change = before
    live(card, plan)
    assert seen == ["param", "param", "reload"] * 4


# The mesh stands on it ------------------------------------------------------------------------


def test_mesh_setup_refuses_before_any_change(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    for check in (True, False):
        with pytest.raises(HostError) as refused:
            fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, check)
        assert str(refused.value) == (
            "spark0 relays, and its hairpin setting is default (2 queues of 1024, needed are 4 of 8192) on"
            " enp1s0f0np0 (cw_primary), enP2p1s0f0np0 (cw_secondary), enp1s0f1np1 (ccw_primary),"
            " enP2p1s0f1np1 (ccw_secondary): run sparkring hairpin"
        )
        assert card.altering() == []
    live(card, plan)
    ids = [change["id"] for change in fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, False).changes]
    assert f"unit/{marks.HAIRPIN_UNIT}" in ids and f"file{marks.UNIT_DIR}/{marks.HAIRPIN_UNIT}" in ids
    assert fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, False).changes == []


def test_an_unresolved_restart_keeps_the_mesh_from_being_laid(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    live(card, plan)
    entries = hairpin_journal.read(card.host()) or {}
    path = tmp_path / hairpin_journal.PATH.lstrip("/")
    path.write_text(path.read_text().replace('"done"', '"started"', 1))
    with pytest.raises(
        HostError, match=r"^spark0: the driver restart of .* is not resolved: .*: run sparkring hairpin$"
    ):
        fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, True)
    assert [change["id"] for change in live(card, plan).changes] == ["hairpin/journal"]
    assert hairpin_journal.read(card.host()) == entries
    fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, True)


def test_removal_takes_unit_and_journal(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    before = set(card.memory()["files"])
    live(card, plan)
    fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, False)
    fabric.remove(card.host(), plan, check=False)
    ours = [name for name in set(card.memory()["files"]) - before if "gid" not in name]
    assert ours == [] and card.truly()


def test_the_check_names_the_state(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    card.functions[BDF[CW]].probe()
    asked = [{"id": "hairpin.in_effect", "subject": link.id, "expected": "in-effect"} for link in plan.links]
    asking = HostPlan.from_plain({**json.loads(json.dumps(ring.plan("mlx5"))), "checks": asked})
    for link, planned in zip(asking.links, plan.links, strict=True):
        object.__setattr__(link, "bdf", planned.bdf)
    first, second, *_ = checks.answer(card.host(), asking)
    assert (first["ok"], second["ok"]) == (False, True)
    assert first["found"] == "default (2 queues of 1024, needed are 4 of 8192)"
    assert first["fix"] == "run sparkring hairpin, or read why in docs/hairpin.md"


# Guards ---------------------------------------------------------------------------------------


def _qp(card: FakeCard) -> None:
    card.resources["qp"] = [
        {"ifname": "rocep1s0f0", "port": 1, "lqpn": 9, "type": "RC", "pid": 77, "comm": "vllm"},
        {"ifname": "mlx5_other", "port": 1, "lqpn": 9, "type": "RC", "pid": 78, "comm": "elsewhere"},
    ]


def _pd(card: FakeCard) -> None:
    card.resources["pd"] = [{"ifname": "roceP2p1s0f1", "pdn": 3, "pid": 79}]


def _foreign_filter(card: FakeCard) -> None:
    card.qdiscs[CW] = "clsact"
    card.filters.append({"dev": CW, "side": "ingress", "protocol": "all", "pref": 7, "kind": "matchall", "options": {}})


def _units(name: str, state: str, group: str = "") -> Callable[[FakeCard], None]:
    def busy(card: FakeCard) -> None:
        card.busy[name] = (state, group)
        if group:
            card.file(f"/sys/fs/cgroup{group}/cgroup.procs", "4711")

    return busy


def _mac(card: FakeCard) -> None:
    card.file(f"sys/bus/pci/devices/{BDF[CW]}/net/{CW}/address", "02:00:00:00:00:01")


def _renamed(card: FakeCard) -> None:
    folder = card.root / f"sys/bus/pci/devices/{BDF[CW]}/net"
    (folder / CW).rename(folder / "eth0")


def _rdma_renamed(card: FakeCard) -> None:
    folder = card.root / f"sys/bus/pci/devices/{BDF[CW]}/infiniband"
    (folder / "rocep1s0f0").rename(folder / "mlx5_0")


def _moved(card: FakeCard) -> None:
    (card.root / f"sys/bus/pci/devices/{BDF[CW]}").rename(card.root / "sys/bus/pci/devices/0000:05:00.0")


def _other_host(card: FakeCard) -> None:
    card.file("sys/class/infiniband/rocep1s0f0/node_guid", "5054:00ff:fe00:ffff")


def _unknown(card: FakeCard) -> None:
    card.functions[BDF[CW]].steering = "dmfs"


def _broken(name: str) -> Callable[[FakeCard], None]:
    return lambda card: card.broken.add(name)


ALWAYS = [
    (_qp, "process 77 (vllm) uses rocep1s0f0: stop it"),
    (_pd, "process 79 (?) uses roceP2p1s0f1: stop it"),
    (
        _foreign_filter,
        "enp1s0f0np0 has a foreign matchall filter at ingress preference 7, which a restart would lose: remove it",
    ),
    (
        _units("sparkring-node-marker@rocep1s0f0.service", "active"),
        "sparkring-node-marker@rocep1s0f0.service is active: stop it",
    ),
    (
        _units("sparkring-node-rank@glm.service", "activating"),
        "sparkring-node-rank@glm.service is activating: stop it",
    ),
    (
        _units("sparkring-node-rank@glm.service", "failed", "/system.slice/rank"),
        "sparkring-node-rank@glm.service is stopped and left processes: end them",
    ),
    (_units("sparkring-relay-marker.service", "active"), "sparkring-relay-marker.service is active: stop it"),
    (_mac, "enp1s0f0np0 has MAC 02:00:00:00:00:01, planned is 52:54:00:00:00:01: run rebind"),
    (_renamed, "PCI address 0000:01:00.0 has netdev eth0, planned is enp1s0f0np0: run rebind"),
    (_rdma_renamed, "PCI address 0000:01:00.0 has RDMA device mlx5_0, planned is rocep1s0f0: run rebind"),
    (_moved, "enp1s0f0np0 is planned at PCI address 0000:01:00.0, which does not exist here: run rebind"),
    (_other_host, re.compile(r"^this is not spark0: its identity is [0-9a-f]{32}: run rebind$")),
    (
        _unknown,
        "the hairpin setting is unknown (flow_steering_mode is dmfs, needed is hmfs) on enp1s0f0np0 (cw_primary):"
        " settle that first",
    ),
    (_broken("rdma"), "rdma -j resource show qp: rdma is broken (exit 1)"),
    (_broken("tc"), "tc -j qdisc show: tc is broken (exit 1)"),
    (_broken("systemctl"), re.compile("^systemctl show .*: systemctl is broken")),
]


@pytest.mark.parametrize("mode", [hairpin_run.LIVE, hairpin_run.BOOT])
@pytest.mark.parametrize(("spoil", "sentence"), ALWAYS)
def test_guards(tmp_path: Path, mode: str, spoil: Callable[[FakeCard], None], sentence: str | re.Pattern[str]) -> None:
    card, plan = bare(tmp_path)
    spoil(card)
    for check in (True, False):
        with pytest.raises(HostError) as refused:
            hairpin_run.bring(card.host(), plan, mode, check, card.clock())
        assert str(refused.value) == sentence if isinstance(sentence, str) else sentence.search(str(refused.value))
        assert card.altering() == [] and journal(card) == {}


def _gpu(card: FakeCard) -> None:
    card.gpu = ["4711, python3"]


def _autoconnect(card: FakeCard) -> None:
    card.add_profile("Wired", CW, active=True, autoconnect="no")


def _unbound(card: FakeCard) -> None:
    card.profiles[card.add_profile("Wired", CW, active=True)]["connection.interface-name"] = ""


def _nobodys_address(card: FakeCard) -> None:
    card.links[CW].addresses = ["10.0.0.1/24"]


LIVE_ONLY = [
    (_gpu, "process 4711 (python3) computes on the GPU: stop it"),
    (
        _autoconnect,
        re.compile(
            r"^the NetworkManager profile 'Wired' of enp1s0f0np0 does not connect by itself:"
            r" nmcli connection modify uuid \S+ connection.autoconnect yes$"
        ),
    ),
    (
        _unbound,
        re.compile(
            r"^the NetworkManager profile 'Wired' is not bound to enp1s0f0np0:"
            r" nmcli connection modify uuid \S+ connection.interface-name enp1s0f0np0$"
        ),
    ),
    (
        _nobodys_address,
        "enp1s0f0np0 has an address that no NetworkManager profile brings back: give it one",
    ),
]


@pytest.mark.parametrize(("spoil", "sentence"), LIVE_ONLY)
def test_guards_of_a_live_run(
    tmp_path: Path, spoil: Callable[[FakeCard], None], sentence: str | re.Pattern[str]
) -> None:
    card, plan = bare(tmp_path)
    spoil(card)
    with pytest.raises(HostError) as refused:
        live(card, plan)
    assert str(refused.value) == sentence if isinstance(sentence, str) else sentence.search(str(refused.value))
    assert card.altering() == [] and journal(card) == {}
    boot(card, plan)
    assert card.truly()


def test_a_gpu_tool_that_fails_is_no_leave(tmp_path: Path) -> None:
    card, plan = bare(tmp_path, gpu=[], broken={"nvidia-smi"})
    with pytest.raises(HostError, match=r"^nvidia-smi .*: nvidia-smi is broken \(exit 1\)$"):
        live(card, plan)
    card.broken.clear()
    live(card, plan)


def test_a_profile_bound_to_the_mac_comes_back(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    profile = card.profiles[card.add_profile("Wired", CW, active=True)]
    profile.update({"connection.interface-name": "", "802-3-ethernet.mac-address": plan.links[0].mac.upper()})
    live(card, plan, check=True)


def test_a_session_over_the_fabric_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, plan = set_up(tmp_path)
    stop_markers(card)
    card.functions[BDF[CW]].probe()
    monkeypatch.setattr(survey, "ssh_address", lambda host: "198.18.0.1")
    with pytest.raises(
        HostError,
        match=r"^this session comes in by enp1s0f0np0 \(198\.18\.0\.1\), which a restart cuts: use another way in$",
    ):
        live(card, plan)
    monkeypatch.setattr(survey, "ssh_address", lambda host: "192.0.2.10")
    live(card, plan)


def test_several_guards_are_said_together(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    _qp(card)
    _gpu(card)
    with pytest.raises(HostError, match=r"^process 77 .*: stop it; process 4711 .*: stop it$"):
        live(card, plan)


# Failures of a restart ------------------------------------------------------------------------


def test_an_error_of_devlink_counts_nothing_where_the_counter_rose(tmp_path: Path) -> None:
    card, plan = bare(tmp_path, behaviour={BDF[CW]: fake_card.ERRS_BUT_DONE})
    live(card, plan)
    assert card.truly() and journal(card)[BDF[CW]] == "done"


def test_offload_lost_in_the_restart_is_switched_on(tmp_path: Path) -> None:
    card, plan = bare(tmp_path, behaviour={BDF[CW]: fake_card.NO_OFFLOAD})
    live(card, plan)
    assert card.truly()


@pytest.mark.parametrize("mode", [hairpin_run.LIVE, hairpin_run.BOOT])
@pytest.mark.parametrize("step", [fake_card.REFUSES, "set hairpin_num_queues", "set hairpin_queue_size"])
def test_a_refusal_leaves_the_values_as_they_were(tmp_path: Path, mode: str, step: str) -> None:
    card, plan = bare(tmp_path, behaviour={BDF[CW2]: step})
    with pytest.raises(HostError) as failed:
        hairpin_run.bring(card.host(), plan, mode, False, card.clock())
    assert re.fullmatch(
        r"the driver of enP2p1s0f0np0 refused a restart \(.*(Device or resource busy|Invalid argument).*\):"
        r" its values are what they were",
        str(failed.value),
    )
    assert states(card, plan) == ["in-effect", "default", "default", "default"]
    assert card.functions[BDF[CW2]].shown == fake_card.DEFAULTS
    assert journal(card) == {BDF[CW]: "done", BDF[CW2]: "refused"}
    assert hairpin_journal.suspended(card.host()) == ""


BAD = [
    (fake_card.FAILS, r"the restart of the driver of enP2p1s0f0np0 failed \(.*\): run sparkring hairpin again"),
    (fake_card.NO_RISE, r"the driver of enP2p1s0f0np0 says that it was restarted, and its count did not rise"),
    (
        fake_card.HANGS,
        r"the restart of the driver of enP2p1s0f0np0 did not end within 30 s: power-cycle spark0, then run"
        r" sparkring hairpin",
    ),
    (
        fake_card.STAYS_AWAY,
        r"enP2p1s0f0np0 did not return: PCI address 0002:01:00\.0 has netdev none, "
        "planned is enP2p1s0f0np0: run rebind",
    ),
    (
        fake_card.RENAMED,
        r"enP2p1s0f0np0 did not return: PCI address 0002:01:00\.0 has netdev eth0, "
        "planned is enP2p1s0f0np0: run rebind",
    ),
    (
        fake_card.NO_ANSWER,
        r"after the restart of the driver of enP2p1s0f0np0, devlink does not answer: power-cycle the host",
    ),
    (
        "offload stays off",
        r"after the restart of its driver, enP2p1s0f0np0 is offload-off \(hw-tc-offload is off\)",
    ),
]


@pytest.mark.parametrize("mode", [hairpin_run.LIVE, hairpin_run.BOOT])
@pytest.mark.parametrize(("behaviour", "sentence"), BAD)
def test_a_failure_ends_the_run_and_suspends_the_boot_unit(
    tmp_path: Path, mode: str, behaviour: str, sentence: str
) -> None:
    card, plan = bare(tmp_path, behaviour={BDF[CW2]: behaviour})
    if behaviour == "offload stays off":
        card.functions[BDF[CW2]].offload = "off"
    with pytest.raises(HostError) as failed:
        hairpin_run.bring(card.host(), plan, mode, False, card.clock())
    assert re.fullmatch(sentence, str(failed.value))
    assert journal(card) == {BDF[CW]: "done", BDF[CW2]: "failed"}
    assert reloads(card) == RESTARTS[:2]
    assert card.now < hairpin_run.BUDGET_SECONDS[mode]
    assert states(card, plan)[1] != "in-effect"
    card.reboot()
    card.behaviour.clear()
    card.functions[BDF[CW2]].offload = "on"
    with pytest.raises(HostError) as suspended:
        boot(card, plan)
    assert re.fullmatch(
        r"no restarts at boot, since the driver restart of enP2p1s0f0np0 \(0002:01:00\.0\) begun at \S+ is not"
        rf" resolved: {sentence}: run sparkring hairpin",
        str(suspended.value),
    )
    assert set(states(card, plan)) == {"default"}
    live(card, plan)
    assert card.truly() and hairpin_journal.suspended(card.host()) == ""
    card.reboot()
    boot(card, plan)
    assert card.truly()


def test_an_address_that_must_be_asked_for(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    stop_markers(card)
    card.functions[BDF[CW]].probe()
    card.behaviour = {BDF[CW]: fake_card.NO_ADDRESS_UNASKED}
    live(card, plan)
    assert card.links[CW].addresses == ["198.18.0.1/24"]


def test_an_address_that_does_not_return_is_named_and_the_rest_is_laid_again(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    stop_markers(card)
    for function in card.functions.values():
        function.probe()
    card.behaviour = {BDF[CW]: fake_card.NO_ADDRESS}
    with pytest.raises(HostError) as failed:
        live(card, plan)
    assert str(failed.value).startswith(
        "enp1s0f0np0 is in-effect and did not get 198.18.0.1/24 back: check its cable and the host at its other end,"
        " then run mesh-setup; "
    )
    assert journal(card)[BDF[CW]] == "done" and hairpin_journal.suspended(card.host()) == ""
    assert states(card, plan) == ["in-effect", "default", "default", "default"]
    assert len(card.filters) == 4 and sum("marker@" in name for name in card.running) == 4


def test_a_link_without_carrier_is_not_waited_for(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    stop_markers(card)
    card.set_carrier(CW, False)
    card.functions[BDF[CW]].probe()
    with pytest.raises(HostError, match=r"^enp1s0f0np0 has no address: check its cable"):
        live(card, plan)
    assert card.functions[BDF[CW]].used == fake_card.WANTED


def test_no_function_is_begun_when_its_time_may_not_suffice(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    slow = card.clock()
    with pytest.raises(
        HostError,
        match=r"^the time of this run is over before enp1s0f1np1, enP2p1s0f1np1: run sparkring hairpin again$",
    ):
        ticks = iter([0.0])
        hairpin_run.bring(
            card.host(),
            plan,
            hairpin_run.LIVE,
            False,
            hairpin_run.Clock(lambda: next(ticks, 0.0) + card.now + 100 * len(reloads(card)), slow.sleep),
        )
    assert journal(card) == {BDF[CW]: "done", BDF[CW2]: "done"}
    live(card, plan)
    assert card.truly()


def test_a_disk_that_is_full_restarts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card, plan = bare(tmp_path)

    def full(self: Any, path: str, data: bytes, mode: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fake_card.CutHost, "write", full)
    with pytest.raises(HostError, match=r"hairpin\.json cannot be written \(No space left on device\), and without it"):
        live(card, plan)
    assert card.altering() == []


def test_a_damaged_journal_suspends_and_a_live_run_begins_a_new_one(tmp_path: Path) -> None:
    card, plan = bare(tmp_path)
    card.file(hairpin_journal.PATH, "{")
    with pytest.raises(
        HostError, match=r"^no restarts at boot, since /etc/sparkring-node/hairpin\.json is damaged: run"
    ):
        boot(card, plan)
    live(card, plan)
    assert journal(card) == dict.fromkeys(BDF.values(), "done")


# Boot -----------------------------------------------------------------------------------------


def test_the_boot_unit_lays_it_at_every_boot(tmp_path: Path) -> None:
    card, _ = set_up(tmp_path)
    for _ in range(2):
        card.reboot()
        assert not card.truly()
        assert card.start_hairpin() == "" and card.truly()
        card.start_network()
        assert card.start_units() == []
        assert len(card.filters) == 4


def test_the_kernels_command_line_switches_it_off(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    card.reboot()
    card.file("proc/cmdline", "BOOT_IMAGE=/vmlinuz quiet sparkring.hairpin=off")
    card.log.clear()
    said = boot(card, plan)
    assert said.lines == ["spark0: switched off by sparkring.hairpin=off on the kernel's command line"]
    assert card.log == [] and not card.truly()
    card.file("proc/cmdline", "quiet sparkring.hairpin=offset")
    boot(card, plan)
    assert card.truly()


def test_at_boot_the_driver_is_waited_for(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path)
    card.reboot()
    card._away(card.functions[BDF[CW]])
    card.later.append((card.now + 10, lambda: card._back(card.functions[BDF[CW]], fake_card.NO_ADDRESS)))
    boot(card, plan)
    assert card.truly()
