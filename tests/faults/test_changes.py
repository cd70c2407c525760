"""Changes that are cut short, contradict each other or would cut their own branch."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.green import Observed
from tests.virtual_ring import LAB, REPOSITORY, Ring

LAY = REPOSITORY / "tests" / "faults" / "lay.yml"
INVENTORY = LAB / "inventory" / "hosts.yml"
SEED = int(os.environ.get("SEED", "20261201"))
REVERT_SECONDS = 420
BOOT_SECONDS = 420
CUTS_A_ROUND = 4
ROUNDS = 3

OURS = (
    "ls /etc/sparkring-node /usr/local/lib/sparkring-node 2>/dev/null; ls /etc/systemd/system | grep sparkring-node;"
    "ip -4 route show table all proto 83; ip neigh show proto 83; iptables -w -S | grep sparkring.cluster;"
    "nmcli -t -f NAME connection show | grep ^sparkring-; tc qdisc show | grep clsact; echo looked"
)
"""Lines about what is ours on a host, and one that says that the host was asked to the end."""


@contextmanager
def laying() -> Iterator[subprocess.Popen[str]]:
    """The play that lays the plan, running by itself in its own process group."""
    with subprocess.Popen(
        [str(REPOSITORY / ".venv/bin/ansible-playbook"), "-i", str(INVENTORY), str(LAY)],
        cwd=REPOSITORY,
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def changing(ring: Ring, host: str) -> bool:
    """Whether a change is pending on the host."""
    return ring.shell(host, "test -e /etc/sparkring-node/change.json && echo yes", must=False) == "yes\n"


def wait_until_changing(ring: Ring, hosts: list[str]) -> None:
    deadline = time.monotonic() + 120
    while not all(changing(ring, host) for host in hosts):
        assert time.monotonic() < deadline, "the change did not begin"
        time.sleep(0.5)


def stands(observed: Observed, host: str) -> str:
    """``old`` where nothing of ours is left, ``new`` where nothing differs from the plan, else what is there."""
    if changing(observed.ring, host):
        return "a change is pending"
    ours = observed.ring.shell(host, OURS, must=False).splitlines()
    if ours[-1:] != ["looked"]:
        return "it does not answer"
    if ours == ["looked"]:
        return "old"
    return "new" if observed.differences(host) == [] else "; ".join(ours)


def wait_until_whole(observed: Observed, seconds: float) -> dict[str, str]:
    """Until every host is in the old or the new plan; which one, by host."""
    deadline = time.monotonic() + seconds
    while True:
        found = observed.each(lambda host: stands(observed, host))
        if set(found.values()) <= {"old", "new"}:
            return found
        assert time.monotonic() < deadline, f"neither old nor new: {found}"
        time.sleep(5)


def lay_again(observed: Observed, fault: str) -> None:
    observed.mark()
    observed.ring.run(True, playbook=str(LAY), inventory=str(INVENTORY))
    observed.wait(fault, 300)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_power_is_lost_while_laying(bare: Observed, round_: int) -> None:
    """Four hosts lose power at random moments of one apply, each shortly; they boot into the old or the new plan."""
    moments = random.Random(f"{SEED}/{round_}")
    delays = {host: moments.uniform(0, 60) for host in bare.hosts[:CUTS_A_ROUND]}
    print(f"SEED={SEED} round {round_}: " + ", ".join(f"{host} at {delay:.1f} s" for host, delay in delays.items()))
    with laying():
        wait_until_changing(bare.ring, bare.hosts[:1])
        begun = time.monotonic()
        for host, delay in sorted(delays.items(), key=lambda item: item[1]):
            time.sleep(max(0.0, begun + delay - time.monotonic()))
            for state in ("off", "on"):
                bare.ring.lab(state=state, host=bare.hosts.index(host))
    found = wait_until_whole(bare, BOOT_SECONDS)
    print(f"after boot: {found}")
    lay_again(bare, f"power lost in round {round_}, laid again")


def test_the_connection_is_cut_while_laying(bare: Observed) -> None:
    with laying() as process:
        wait_until_changing(bare.ring, bare.hosts)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(["pkill", "-f", f"{os.path.expanduser('~')}/.ansible/cp"], check=False)
    bare.mark()
    assert set(wait_until_whole(bare, REVERT_SECONDS).values()) == {"old"}
    lay_again(bare, "connection cut, reverted, laid again")


def test_a_stopped_run_is_run_again_at_once(bare: Observed) -> None:
    with laying() as process:
        wait_until_changing(bare.ring, bare.hosts)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    lay_again(bare, "run killed, run again at once")


def test_a_second_run_is_refused_by_name(bare: Observed) -> None:
    with laying() as process:
        wait_until_changing(bare.ring, bare.hosts)
        second = bare.ring.run(False, playbook=str(LAY), inventory=str(INVENTORY))
        first, _ = process.communicate(timeout=300)
    assert second.rc != 0
    assert f"{os.environ.get('USER', 'root')}@" in second.told()
    assert process.returncode == 0, first
    assert all(not ids for ids in bare.each(bare.differences).values())


def test_a_full_disk_stops_the_change_whole(bare: Observed) -> None:
    host = bare.hosts[2]
    bare.ring.shell(host, "fallocate -l $(df --output=avail -B1 / | tail -1) /full || dd if=/dev/zero of=/full bs=1M")
    failed = bare.ring.run(False, playbook=str(LAY), inventory=str(INVENTORY))
    assert "No space left" in failed.told()
    bare.ring.shell(host, "rm /full")
    wait_until_whole(bare, REVERT_SECONDS)
    lay_again(bare, "disk full, freed, laid again")


def test_a_plan_that_cuts_the_management_path_is_refused(bare: Observed) -> None:
    host = bare.hosts[0]
    plan = bare.plan(host)
    management = plan["management"]["netdev"]
    plan["links"][0]["netdev"] = management
    run = bare.ring.run(
        False,
        host_pattern=host,
        module="sparkring.cluster.fabric",
        module_args=json.dumps({"plan": plan}),
        cmdline="--become",
        inventory=str(INVENTORY),
    )
    assert management in run.told()
    assert bare.ring.shell(host, OURS, must=False) == "looked\n"


def test_changed_hardware_goes_through_rebind(green: Observed) -> None:
    """A card with another MAC: refused by name, accepted by rebind, then its neighbours follow."""
    host = green.hosts[1]
    netdev = green.plan(host)["links"][0]["netdev"]
    mac = "52:54:00:99:00:01"
    green.ring.shell(
        host, f"ip link set {netdev} down && ip link set {netdev} address {mac} && ip link set {netdev} up"
    )
    refused = green.ring.play("mesh_setup", must=False)
    assert refused.rc != 0
    assert mac in refused.told()
    green.ring.command("rebind", "--yes")
    green.mark()
    green.ring.play("mesh_setup")
    green.wait("a MAC changed, accepted by rebind, set up", 600)
