"""The rank of a host: what is laid, what power loss leaves, what is refused before a start, how it starts and stops."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents, marks, rank_unit
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import (
    Folder,
    Image,
    KnownFile,
    MemoryGate,
    RankUnit,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.node import rank, rank_checks, rank_states
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from tests.cut_kernel import Cut
from tests.fake_kernel import FakeKernel, Refusal
from tests.unit.node import ring

ID, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
SHA256 = hashlib.sha256(b"weights").hexdigest()
MEMORY = "MemTotal: 130000000 kB\nMemAvailable: 120000000 kB"
BUDDIES = "Node 0, zone   Normal  0 0 0 0 0 0 0 0 0 0 0 0 0 9"
PORTS = (
    "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A\n   1: 0100007F:1F40 0100007F:9999 01"
)


@dataclass
class RankKernel(FakeKernel):
    """A host with a container engine that serves ranks."""

    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)

    def _docker(self, words: list[str]) -> Any:
        kind, name = words[0], words[-1]
        known: dict[str, Any] = {"image": self.images, "container": self.containers}[kind]
        if name not in known:
            raise Refusal(f"No such {kind}: {name}")
        return known[name] if kind == "image" else {"Status": known[name]}

    def _journalctl(self, words: list[str]) -> str:
        return "loading\nout of memory\n"

    def _systemctl(self, words: list[str]) -> str:
        return "" if words[0] == "reset-failed" else super()._systemctl(words)

    def _start(self, name: str) -> None:
        if "-rank@" not in name:
            return super()._start(name)
        assert (self.root / marks.UNIT_DIR.lstrip("/") / name).exists(), name
        self.running.add(name)
        return None


def unit(**changes: Any) -> RankUnit:
    """A rank of host 0 that this host can start."""
    made = RankUnit(
        schema=documents.RANK_UNIT,
        deployment="small",
        recipe="small",
        ring="home",
        plan_digest="sha256:" + "c" * 64,
        host="spark0",
        rank=0,
        ranks=4,
        engine="container",
        fabric=True,
        unit="sparkring-node-rank@small.service",
        container="sparkring-small-r0",
        image=Image(ID, "name:r1", ID, None, None, ["vllm", "serve"]),
        options=[],
        command=["/models/small"],
        environment={"A": "1"},
        gids={"NCCL_IB_GID_INDEX": [ring.RDMA["cw_primary"], ring.RDMA["ccw_primary"]]},
        folders=[Folder("/var/lib/models", "/models", False), Folder("/var/cache/small", "/cache", True)],
        files=[KnownFile("/var/lib/models/weights", SHA256)],
        ports=[8000],
        memory=MemoryGate(110, 8),
        disk_bytes=1,
        timeout_seconds=60,
        api="http://127.0.0.1:8000",
        model_name="small",
        status="implemented",
        changed=[],
        invariant="sha256:" + "d" * 64,
    )
    return replace(made, **changes)


@pytest.fixture
def kernel(tmp_path: Path) -> RankKernel:
    made = RankKernel(tmp_path, ring.links())
    made.file(marks.PLAN_PATH, json.dumps({"plan_digest": unit().plan_digest}))
    made.file("/var/lib/models/x", "")
    (tmp_path / "var/lib/models/weights").write_bytes(b"weights")
    made.file("/proc/meminfo", MEMORY)
    made.file("/proc/buddyinfo", BUDDIES)
    made.file("/proc/net/tcp", PORTS)
    made.images[ID] = {"Id": ID, "RepoDigests": [], "Config": {"Entrypoint": ["vllm", "serve"]}}
    return made


def place(kernel: FakeKernel, given: RankUnit, check: bool = False) -> rank.Outcome:
    return rank.place(kernel.host(), given, f"# {given.deployment}\n", "A=1\n", check)


def test_a_rank_is_laid_once(kernel: RankKernel) -> None:
    foreseen = place(kernel, unit(), check=True)
    assert not kernel.host().path(rank_unit.DIRECTORY).exists()
    done = place(kernel, unit())
    assert done.changes == foreseen.changes == [
        "/etc/sparkring-node/rank/current/unit.json",
        "/etc/sparkring-node/rank/current/rank.service",
        "/etc/sparkring-node/rank/current/environment",
        f"{marks.UNIT_DIR}/sparkring-node-rank@small.service",
        "/var/cache/small",
    ]  # fmt: skip
    assert (done.before, done.after) == (foreseen.before, foreseen.after)
    assert rank.standing(kernel.host()) == unit()
    assert place(kernel, unit()).changes == []
    for name in (rank_unit.ENVIRONMENT_PATH, rank_unit.DOCUMENT_PATH):
        assert kernel.host().path(name).stat().st_mode & 0o777 == 0o600


def test_the_deployment_before_is_kept_whole_and_comes_back(kernel: RankKernel) -> None:
    first, second = unit(), unit(deployment="large", unit="sparkring-node-rank@large.service")
    place(kernel, first)
    rank.start(kernel.host(), first)
    place(kernel, second)
    assert kernel.running == set()
    assert rank.standing(kernel.host(), rank_unit.PREVIOUS) == first
    assert not kernel.host().path(f"{marks.UNIT_DIR}/{first.unit}").exists()
    assert rank.swap(kernel.host(), check=True) == first
    assert rank.standing(kernel.host()) == second
    assert rank.swap(kernel.host(), check=False) == first
    assert rank.standing(kernel.host()) == first
    assert rank.standing(kernel.host(), rank_unit.PREVIOUS) == second
    assert rank.swap(kernel.host(), check=False) == second


def test_there_must_be_something_to_go_back_to(kernel: RankKernel) -> None:
    place(kernel, unit())
    with pytest.raises(HostError, match="no previous deployment to go back to: run serve"):
        rank.swap(kernel.host(), check=False)


class CutHost(Host):
    """A host that loses power after some of its writes and moves."""

    left = 0

    def _event(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Cut

    def write(self, path: str, data: bytes, mode: int) -> None:
        super().write(path, data, mode)
        self._event()

    def move(self, path: str, target: str) -> None:
        super().move(path, target)
        self._event()


def test_power_loss_leaves_one_deployment_or_the_other(tmp_path: Path) -> None:
    """Whatever step it comes after, the next run ends where it would have, and the first one can be gone back to."""
    first, second = unit(), unit(environment={"A": "2"})
    for step in range(1, 20):
        kernel = RankKernel(tmp_path / str(step), ring.links())
        place(kernel, first)
        host = CutHost(kernel, kernel.root)
        host.left = step
        try:
            rank.place(host, second, "# 2\n", "A=2\n", check=False)
        except Cut:
            assert rank.standing(kernel.host()) in (first, second, None)
            rank.place(kernel.host(), second, "# 2\n", "A=2\n", check=False)
            assert rank.standing(kernel.host()) == second
            assert rank.swap(kernel.host(), check=False) == first
        else:
            assert step > 5
            return
    pytest.fail("it never ended")


def test_it_starts_and_stops(kernel: RankKernel) -> None:
    place(kernel, unit())
    assert rank_states.reach(kernel.host(), {"state": "started"}, True)["changed"]
    assert kernel.running == set()
    assert rank_states.reach(kernel.host(), {"state": "started"}, False)["changed"]
    assert not rank_states.reach(kernel.host(), {"state": "started"}, False)["changed"]
    assert rank.runs(kernel.host(), unit())
    assert not rank.runs(kernel.host(), unit(environment={"A": "2"}))
    for ranks, stops in (([{"runs": True}, {"runs": True}], False), ([{"runs": True}, {"runs": False}], True)):
        answer = rank_states.reach(kernel.host(), {"state": "stopped", "ranks": ranks}, False)
        assert answer["changed"] is stops
    assert kernel.running == set()
    assert not rank_states.reach(kernel.host(), {"state": "stopped"}, False)["changed"]


def test_a_rank_that_ended_shows_its_last_words(kernel: RankKernel) -> None:
    place(kernel, unit())
    seen = rank_states.reach(kernel.host(), {"state": "observed", "probe": True}, False)["rank"]
    assert (seen["active"], seen["log"], seen["runs"]) == ("inactive", ["loading", "out of memory"], False)
    assert "lacks" not in seen


def test_everything_goes(kernel: RankKernel) -> None:
    given = unit(engine="venv", container=None, image=None)
    answer = rank_states.reach(
        kernel.host(),
        {"state": "placed", "unit": documents.to_plain(given), "unit_text": "#\n", "environment": ""},
        False,
    )
    assert rank_unit.KEY_PATH in answer["changes"]
    key = kernel.host().path(rank_unit.KEY_PATH)
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(key.read_text()) > 40
    assert rank_states.reach(kernel.host(), {"state": "absent"}, True)["changed"]
    assert rank_states.reach(kernel.host(), {"state": "absent"}, False)["changed"]
    assert not rank_states.reach(kernel.host(), {"state": "absent"}, False)["changed"]
    assert not kernel.host().path(rank_unit.DIRECTORY).exists()
    assert not kernel.host().path(f"{marks.UNIT_DIR}/{given.unit}").exists()
    assert kernel.host().path("/var/cache/small").is_dir()


def _image(**changes: Any) -> Callable[[RankKernel], None]:
    return lambda kernel: kernel.images[ID].update(changes)


REFUSED: dict[str, tuple[Callable[[RankKernel], Any], RankUnit, str]] = {
    "no plan": (
        lambda k: (k.root / marks.PLAN_PATH.lstrip("/")).unlink(),
        unit(),
        f"the plan laid is none, expected {unit().plan_digest}; run mesh-setup",
    ),
    "unconfirmed plan": (
        lambda k: k.file(marks.CHANGE_PATH, "{}"),
        unit(),
        "a change of its plan is not confirmed yet; run mesh-setup",
    ),
    "no image": (
        lambda k: k.images.clear(),
        unit(),
        f"image {ID} is not on the host; bring it there by that digest",
    ),
    "wrong id": (
        lambda k: k.images.update({"name:r1": k.images.pop(ID) | {"Id": OTHER}}),
        unit(),
        f"the id of image name:r1 is {OTHER}, expected {ID}; load that image",
    ),
    "wrong digest": (
        lambda k: k.images.update({"name:r1": k.images.pop(ID) | {"RepoDigests": [f"registry/name@{OTHER}"]}}),
        unit(image=Image(f"name:r1@{ID}", "name:r1", None, ID, None, None)),
        f"the digest of image name:r1 is {OTHER}, expected {ID}; pull that image",
    ),
    "wrong entrypoint": (
        _image(Config={"Entrypoint": ["/bin/sh"]}),
        unit(),
        "the image's entrypoint is /bin/sh, expected vllm serve; load the image of the recipe",
    ),
    "stale container": (
        lambda k: k.containers.update({"sparkring-small-r0": "exited"}),
        unit(),
        "a container sparkring-small-r0 is there already, exited; look at it, then remove it: docker rm --force "
        "sparkring-small-r0",
    ),
    "missing folder": (
        lambda k: None,
        unit(folders=[Folder("/var/lib/none", "/models", False)]),
        "/var/lib/none is no folder; put there what /models shall hold",
    ),
    "missing file": (
        lambda k: (k.root / "var/lib/models/weights").unlink(),
        unit(),
        "/var/lib/models/weights is missing; bring the recipe's files to every host",
    ),
    "altered file": (
        lambda k: (k.root / "var/lib/models/weights").write_bytes(b"other"),
        unit(),
        f"SHA-256 of /var/lib/models/weights is {hashlib.sha256(b'other').hexdigest()}, expected {SHA256}; "
        "bring the recipe's revision there",
    ),
    "busy port": (
        lambda k: k.file("/proc/net/tcp6", PORTS.replace("1F90", "1F40")),
        unit(),
        "port 8000 is in use, expected free; stop what listens there: ss -ltnp 'sport = 8000'",
    ),
    "little memory": (
        lambda k: k.file("/proc/meminfo", MEMORY.replace("120000000", "100000000")),
        unit(),
        "95.4 GiB of memory are available, expected 110; stop other programs",
    ),
    "memory in pieces": (
        lambda k: k.file("/proc/buddyinfo", BUDDIES.replace(" 9", " 1")),
        unit(),
        "1 free memory blocks of 32 MiB are left, expected 8: memory is in pieces; reboot the host",
    ),
    "no vLLM": (
        lambda k: None,
        unit(engine="venv", image=None, container=None, command=["/opt/vllm/bin/vllm", "serve"]),
        "/opt/vllm/bin/vllm is not there; install vLLM in that environment, or set sparkring_settings.venv",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_start_is_refused(kernel: RankKernel, name: str) -> None:
    break_it, given, sentence = REFUSED[name]
    break_it(kernel)
    assert rank_checks.refusals(kernel.host(), given) == [f"Rank 0 on spark0: {sentence}"]
    with pytest.raises(HostError) as refused:
        rank_states.reach(kernel.host(), {"state": "checked", "unit": documents.to_plain(given)}, False)
    assert str(refused.value) == f"Rank 0 on spark0: {sentence}."


def test_a_little_disk_is_refused(kernel: RankKernel) -> None:
    (sentence,) = rank_checks.refusals(kernel.host(), unit(disk_bytes=1 << 60))
    assert sentence.startswith("Rank 0 on spark0: ")
    assert sentence.endswith(
        "GiB are free for /var/cache/small, expected 1073741824.0 or more; free some, or set sparkring_settings.folders"
    )


def test_what_this_rank_itself_uses_is_no_obstacle(kernel: RankKernel) -> None:
    place(kernel, unit())
    assert rank_checks.refusals(kernel.host(), unit()) == []
    rank.start(kernel.host(), unit())
    kernel.file("/proc/net/tcp", PORTS.replace("1F90", "1F40"))
    kernel.file("/proc/meminfo", MEMORY.replace("120000000", "1000"))
    kernel.containers["sparkring-small-r0"] = "running"
    assert rank_checks.refusals(kernel.host(), unit()) == []
    assert len(rank_checks.refusals_now(kernel.host(), unit())) == 3


def gids(kernel: FakeKernel, indices: dict[str, int]) -> None:
    """Show the address of each link at an index of its device's table."""
    for link in HostPlan.from_plain(ring.plan()).links:
        number = int.from_bytes(bytes(map(int, link.address.partition("/")[0].split("."))), "big")
        port, index = f"/sys/class/infiniband/{link.rdma_device}/ports/1", indices.get(link.role, 3)
        kernel.file(f"{port}/gids/{index}", f"0000:0000:0000:0000:0000:ffff:{number >> 16:04x}:{number & 0xFFFF:04x}")
        kernel.file(f"{port}/gid_attrs/types/{index}", "RoCE v2")
        kernel.file(f"{port}/gid_attrs/ndevs/{index}", link.netdev)


def test_gid_indices_are_found_at_each_start(kernel: RankKernel) -> None:
    place(kernel, unit())
    gids(kernel, {"cw_secondary": 7})
    rank.write_gids(kernel.host(), HostPlan.from_plain(ring.plan()))
    assert kernel.host().read(rank_unit.GID_PATH) == "NCCL_IB_GID_INDEX=3"


def test_devices_must_agree_on_an_index(kernel: RankKernel) -> None:
    place(kernel, unit())
    gids(kernel, {"cw_primary": 5})
    with pytest.raises(HostError, match=r"different indices \(\w+ 5, \w+ 3\)"):
        rank.write_gids(kernel.host(), HostPlan.from_plain(ring.plan()))


def test_a_device_of_no_link_is_named(kernel: RankKernel) -> None:
    place(kernel, unit(gids={"NCCL_IB_GID_INDEX": ["mlx5_9"]}))
    with pytest.raises(HostError, match="mlx5_9 is in no link of this host's plan: run serve"):
        rank.write_gids(kernel.host(), HostPlan.from_plain(ring.plan()))
