"""Serving over the mesh of the ring: an engine that stands in for vLLM looks for its devices, peers and library."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.virtual_ring import LAYOUT, REPOSITORY, Ring

pytestmark = pytest.mark.skipif(LAYOUT != "cycle-4", reason="its recipe is for four hosts")

STANDIN = "/opt/standin/bin/vllm"
UNIT = "sparkring-node-rank@standin-ring.service"


@pytest.fixture(scope="module")
def given(ring: Ring, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an operator says of the deployment, on a ring that is set up and holds the engine."""
    library = tmp_path_factory.mktemp("nccl") / "libnccl.so.2"
    source = b'const char *ncclVersion(void) { return "NCCL version 2.30.7"; }'
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], input=source, check=True)
    ring.play("prepare")
    ring.play("mesh_setup")
    for folder in (str(Path(STANDIN).parent), "/var/lib/sparkring/models/sparkring/none"):
        ring.each("ansible.builtin.file", f"path={folder} state=directory")
    ring.each("ansible.builtin.copy", f"src={REPOSITORY}/tests/serving/standin.py dest={STANDIN} mode=0755")
    nccl = {
        "id": "standin",
        "version": "2.30.7",
        "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
        "patches": ["skip-tree"],
        "source": "tests/lab/test_serving.py",
        "date": "2026-12-07",
    }
    return {
        "sparkring_recipes_dir": str(REPOSITORY / "tests/serving/recipes"),
        "sparkring_recipe": "standin-ring",
        "sparkring_settings": {"venv": "/opt/standin", "nccl": nccl},
        "sparkring_nccl_from": {"file": str(library)},
    }


def test_a_library_that_is_not_there_is_named(ring: Ring, given: dict[str, Any]) -> None:
    refused = ring.play("serve", must=False, **given)
    assert refused.rc != 0
    for rank, host in enumerate(ring.hosts):
        place = f"/usr/local/lib/sparkring-node/nccl/{given['sparkring_settings']['nccl']['sha256']}/libnccl.so.2"
        said = refused.results("Ask whether the rank may start")[host]["msg"]
        brought = "run transport, which brings the NCCL library of the deployment"
        assert said == f"Rank {rank} on {host}: {place} is missing; {brought}."


def test_check_announces_what_serve_does(ring: Ring, given: dict[str, Any]) -> None:
    ring.play("transport", **given)
    assert ring.play("transport", **given).changed() == []
    announced = ring.play("serve", check=True, **given)
    assert ring.shell(ring.hosts[0], "ls /etc/sparkring-node/rank", must=False) == ""
    applied = ring.play("serve", **given)
    for task in ("Lay the rank", "Start the rank"):
        would, did = announced.results(task), applied.results(task)
        assert would.keys() == did.keys() == set(ring.hosts)
        assert all(result["changes"] for result in did.values())
    would, did = announced.results("Lay the rank"), applied.results("Lay the rank")
    assert {host: result["changes"] for host, result in would.items()} == {
        host: result["changes"] for host, result in did.items()
    }
    for host, result in announced.results("Lay the rank").items():
        assert f"Rank {ring.hosts.index(host)} of standin-ring" in result["diff"]["after"]


def test_every_rank_runs_over_its_devices(ring: Ring, given: dict[str, Any]) -> None:
    seen = ring.each("sparkring.cluster.rank", "state=observed probe=true")
    stands = {host: (found["rank"]["active"], found["rank"].get("lacks")) for host, found in seen.items()}
    assert stands == dict.fromkeys(ring.hosts, ("active", None))
    for host in ring.hosts:
        assert "is up" in ring.shell(host, f"journalctl -o cat -u {UNIT}")


def test_a_second_serve_changes_nothing(ring: Ring, given: dict[str, Any]) -> None:
    assert ring.play("serve", **given).changed() == []


def test_status_says_that_it_answers(ring: Ring, given: dict[str, Any]) -> None:
    told = ring.play("status").results("Say how the host stands")
    assert all("standin-ring" in "\n".join(result["sparkring_lines"]) for result in told.values())


def test_stop_and_remove_leave_nothing(ring: Ring, given: dict[str, Any]) -> None:
    ring.play("stop")
    ring.play("remove")
    left = "ls -d /etc/sparkring-node /usr/local/lib/sparkring-node /etc/systemd/system/sparkring-node-* 2>/dev/null"
    assert {host: ring.shell(host, left, must=False) for host in ring.hosts} == dict.fromkeys(ring.hosts, "")
