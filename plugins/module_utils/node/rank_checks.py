"""Whether a rank may start on this host: each refusal names the rank, what is expected and what was found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from ..contract import marks
from ..contract.rank_unit import Image, RankUnit
from . import nccl_library, rank
from .host import Host

GIB = 1 << 30
BLOCK = 32 << 20
LISTENING = "0A"
"""State of a listening socket in /proc/net/tcp."""


def refusals(host: Host, unit: RankUnit) -> list[str]:
    """One sentence for each thing that keeps the rank from starting; none where it may.

    What an older deployment of this host uses while it runs is left out: it is stopped before the start.
    """
    standing = rank.standing(host)
    running = standing is not None and rank.active(host, standing) == "active"
    said = [*_lasting(host, unit), *([] if running else _passing(host, unit))]
    return [_where(unit) + sentence for sentence in said]


def refusals_now(host: Host, unit: RankUnit) -> list[str]:
    """As ``refusals``, but only of what other programs may have taken since."""
    return [_where(unit) + sentence for sentence in _passing(host, unit)]


def _where(unit: RankUnit) -> str:
    return f"Rank {unit.rank} on {unit.host}: "


def _lasting(host: Host, unit: RankUnit) -> Iterator[str]:
    if unit.fabric:
        yield from _plan(host, unit)
    if unit.image is not None:
        yield from _image(host, unit.image)
    elif not host.path(unit.command[0]).exists():
        yield f"{unit.command[0]} is not there; install vLLM in that environment, or set sparkring_settings.venv"
    yield from _folders(host, unit)
    yield from _files(host, unit)


def _passing(host: Host, unit: RankUnit) -> Iterator[str]:
    if unit.image is not None:
        yield from _stale(host, unit)
    yield from _ports(host, unit)
    yield from _memory(host, unit)


def _plan(host: Host, unit: RankUnit) -> Iterator[str]:
    try:
        found = json.loads(host.read(marks.PLAN_PATH) or "{}").get("plan_digest", "none")
    except ValueError:
        found = "a damaged one"
    if found != unit.plan_digest:
        yield f"the plan laid is {found}, expected {unit.plan_digest}; run mesh-setup"
    elif host.path(marks.CHANGE_PATH).exists():
        yield "a change of its plan is not confirmed yet; run mesh-setup"


def _image(host: Host, image: Image) -> Iterator[str]:
    if host.find_tool("docker") is None:
        yield "docker is not installed; run prepare, or set sparkring_settings.engine to venv"
        return
    found = _inspected(host, image.run)
    if found is None:
        yield _other_image(image, _inspected(host, image.reference) if image.reference else None)
        return
    own = (found.get("Config") or {}).get("Entrypoint")
    if image.own_entrypoint is not None and own != image.own_entrypoint:
        said, wanted = " ".join(own) if own else "none", " ".join(image.own_entrypoint)
        yield f"the image's entrypoint is {said}, expected {wanted}; load the image of the recipe"


def _inspected(host: Host, image: str) -> dict[str, Any] | None:
    done = host.runner.execute(["docker", "image", "inspect", "--format", "{{json .}}", image], None, 60)
    return json.loads(done.output) if done.status == 0 else None


def _other_image(image: Image, named_so: dict[str, Any] | None) -> str:
    """What is there in place of the image; another one may carry its name."""
    if named_so is None:
        return f"image {image.run} is not on the host; bring it there by that digest"
    if image.id is not None:
        return f"the id of image {image.reference} is {named_so.get('Id')}, expected {image.id}; load that image"
    digests = [name.rpartition("@")[2] for name in named_so.get("RepoDigests") or []]
    return (
        f"the digest of image {image.reference} is {', '.join(digests) or 'none'}, expected {image.digest}; "
        "pull that image"
    )


def _stale(host: Host, unit: RankUnit) -> Iterator[str]:
    if host.find_tool("docker") is None:
        return
    command = ["docker", "container", "inspect", "--format", "{{json .State}}", unit.container or ""]
    done = host.runner.execute(command, None, 60)
    if done.status == 0:
        status = json.loads(done.output).get("Status", "unknown")
        yield (
            f"a container {unit.container} is there already, {status}; look at it, then remove it: "
            f"docker rm --force {unit.container}"
        )


def _folders(host: Host, unit: RankUnit) -> Iterator[str]:
    for folder in unit.folders:
        if not folder.write and not host.path(folder.source).is_dir():
            yield f"{folder.source} is no folder; put there what {folder.target} shall hold"
        elif folder.write and (free := host.free_bytes(folder.source)) < unit.disk_bytes:
            yield (
                f"{free / GIB:.1f} GiB are free for {folder.source}, expected {unit.disk_bytes / GIB:.1f} or more; "
                "free some, or set sparkring_settings.folders"
            )


def _files(host: Host, unit: RankUnit) -> Iterator[str]:
    for known in unit.files:
        found = _sha256(host, known.path)
        if found is None and known.path.startswith(nccl_library.DIRECTORY):
            yield f"{known.path} is missing; run transport, which brings the NCCL library of the deployment"
        elif found is None:
            yield f"{known.path} is missing; bring the recipe's files to every host"
        elif found != known.sha256:
            yield f"SHA-256 of {known.path} is {found}, expected {known.sha256}; bring the recipe's revision there"


def _sha256(host: Host, path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(host.path(path), "rb") as stream:
            while part := stream.read(1 << 20):
                digest.update(part)
    except OSError:
        return None
    return digest.hexdigest()


def _ports(host: Host, unit: RankUnit) -> Iterator[str]:
    taken: set[int] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in (host.read(table) or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == LISTENING:
                taken.add(int(words[1].rpartition(":")[2], 16))
    for port in unit.ports:
        if port in taken:
            yield f"port {port} is in use, expected free; stop what listens there: ss -ltnp 'sport = {port}'"


def _memory(host: Host, unit: RankUnit) -> Iterator[str]:
    gate = unit.memory
    if gate is None:
        return
    lines = (host.read("/proc/meminfo") or "").splitlines()
    available = sum(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    if available < gate.available_gib * GIB:
        yield f"{available / GIB:.1f} GiB of memory are available, expected {gate.available_gib}; stop other programs"
    blocks = free_blocks(host)
    if blocks < gate.free_32mib_blocks:
        yield (
            f"{blocks} free memory blocks of 32 MiB are left, expected {gate.free_32mib_blocks}: memory is in pieces; "
            "reboot the host"
        )


def free_blocks(host: Host, page: int = 4096) -> int:
    """Free blocks of 32 MiB: what the buddy allocator holds in that size or larger ones."""
    total = 0
    for line in (host.read("/proc/buddyinfo") or "").splitlines():
        counts = line.split()[4:]
        total += sum(int(count) * ((page << order) // BLOCK) for order, count in enumerate(counts))
    return total
