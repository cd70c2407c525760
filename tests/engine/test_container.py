"""Ranks as containers of a real engine: what is refused before a start, and what runs when nothing is.

Two ranks of one machine stand for two hosts, on addresses of loopback. Their units' own lines are run, without systemd.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import rank_unit
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import RankUnit
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import rank_checks, rank_probe
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import reader, render, settings, systemd
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import inventory, planner
from tests.engine.conftest import ROOT, Made, docker, wait
from tests.rings import make_bindings
from tests.unit.recipe.examples import exec_line, unquoted

RECIPES = ROOT / "tests" / "serving" / "recipes"
PORT, RENDEZVOUS = 18000, 18001
CONFIG = b"{}\n"


def loopback() -> RingPlan:
    """Two hosts of a switched ring, both on this machine."""
    ends = [(f"spark{place}", {"sparkring_endpoints": {"cw_primary": f"10.9.0.{place + 1}/24"}}) for place in (0, 1)]
    given = inventory.read("home", {"sparkring_layout": "switched"}, ends)
    plan = planner.plan(given, make_bindings(given))
    hosts = {}
    for section in plan.hosts.values():
        management = dataclasses.replace(section.management, address=f"127.0.0.{11 + section.position}", netdev="lo")
        hosts[section.host] = dataclasses.replace(section, management=management)
    return dataclasses.replace(plan, hosts=hosts)


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_bytes(CONFIG)
    (tmp_path / "cache").mkdir()
    return {"model": str(tmp_path / "model"), "cache": str(tmp_path / "cache")}


def units(folders: dict[str, str], **image: str | None) -> list[RankUnit]:
    given = {"folders": folders, "port": PORT, "rendezvous_port": RENDEZVOUS, "image": image}
    made = render.units(reader.find(RECIPES, "standin-container"), loopback(), settings.read(given))
    return [dataclasses.replace(unit, disk_bytes=1 << 20) for unit in made]


def by_digest(made: Made) -> dict[str, str | None]:
    return {"reference": made.reference, "digest": made.digest}


def start_line(unit: RankUnit, folder: Path) -> list[str]:
    """The unit's ExecStart as systemd would read it, with the environment file in another folder."""
    environment = folder / f"environment-{unit.rank}"
    environment.write_text(systemd.environment_text(unit))
    words = unquoted(exec_line(unit, "ExecStart"))
    return [str(environment) if word == rank_unit.ENVIRONMENT_PATH else word for word in words]


@contextmanager
def started(unit: RankUnit, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """One rank, ended as its unit ends it."""
    command = start_line(unit, folder)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            subprocess.run(["docker", "rm", "--force", str(unit.container)], capture_output=True, check=False)


@pytest.mark.parametrize("named", ["digest", "id"])
def test_two_ranks_serve(images: dict[str, Made], folders: dict[str, str], tmp_path: Path, named: str) -> None:
    right = images["right"]
    made = units(folders, **(by_digest(right) if named == "digest" else {"id": right.id}))
    host = Host()
    assert [rank_checks.refusals(host, unit) for unit in made] == [[], []]
    with ExitStack() as stack:
        ranks = [stack.enter_context(started(unit, tmp_path)) for unit in made]
        wait(
            "the answer",
            lambda: rank_probe.answers(host, made[0]) is None or any(rank.poll() is not None for rank in ranks),
        )
        ended = [rank.communicate()[0] for rank in ranks if rank.poll() is not None]
        assert ended == []
        for unit in made:
            told: dict[str, Any] = json.loads(docker("container", "inspect", "--format", "{{json .}}", unit.container))
            check_contained(told, unit)
        assert rank_checks.refusals(host, made[0]) == [
            f"Rank 0 on spark0: a container {made[0].container} is there already, running; look at it, then remove "
            f"it: docker rm --force {made[0].container}",
            f"Rank 0 on spark0: port {PORT} is in use, expected free; stop what listens there: "
            f"ss -ltnp 'sport = {PORT}'",
        ]
    assert [rank_checks.refusals(host, unit) for unit in made] == [[], []]


def check_contained(told: dict[str, Any], unit: RankUnit) -> None:
    """What the engine says of a running rank: nothing it could not do without, and who it belongs to."""
    given = told["HostConfig"]
    assert not given["Privileged"]
    assert given["CapDrop"] == ["ALL"]
    assert not given["CapAdd"]
    assert given["Memory"] == 1 << 30
    assert {mount["Destination"]: mount["RW"] for mount in told["Mounts"]} == {"/models/none": False, "/cache": True}
    assert told["Config"]["Labels"]["sparkring.cluster.rank"] == str(unit.rank)
    assert told["Config"]["Labels"]["sparkring.cluster.plan"] == unit.plan_digest


@contextmanager
def busy() -> Iterator[None]:
    with socket.create_server(("127.0.0.1", PORT)):
        yield


@contextmanager
def stale(unit: RankUnit) -> Iterator[None]:
    docker("create", "--name", str(unit.container), str(unit.image.run if unit.image else None))
    try:
        yield
    finally:
        docker("rm", "--force", str(unit.container))


OTHER = "sha256:" + "0" * 64

REFUSED: dict[str, tuple[Callable[[dict[str, Made]], dict[str, str | None]], str]] = {
    "no image": (
        lambda images: {"id": OTHER, "reference": "127.0.0.1:15005/none:1"},
        f"image {OTHER} is not on the host; bring it there by that digest",
    ),
    "wrong id": (
        lambda images: {"id": OTHER, "reference": images["right"].reference},
        "the id of image {right.reference} is {right.id}, expected " + OTHER + "; load that image",
    ),
    "wrong digest": (
        lambda images: {"digest": OTHER, "reference": images["right"].reference},
        "the digest of image {right.reference} is {right.digest}, expected " + OTHER + "; pull that image",
    ),
    "wrong entrypoint": (
        lambda images: {"id": images["other"].id},
        "the image's entrypoint is /bin/sh -c, expected /opt/standin serve; load the image of the recipe",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_another_image_is_refused(images: dict[str, Made], folders: dict[str, str], name: str) -> None:
    image, sentence = REFUSED[name]
    unit = units(folders, **image(images))[0]
    said = sentence.format(**images)
    assert rank_checks.refusals(Host(), unit) == [f"Rank 0 on spark0: {said}"]


@pytest.mark.parametrize("content", [None, b"{} \n"], ids=["missing", "altered"])
def test_another_file_is_refused(images: dict[str, Made], folders: dict[str, str], content: bytes | None) -> None:
    file = Path(folders["model"]) / "config.json"
    file.unlink()
    said = f"{file} is missing; bring the recipe's files to every host"
    if content is not None:
        file.write_bytes(content)
        found, wanted = (hashlib.sha256(data).hexdigest() for data in (content, CONFIG))
        said = f"SHA-256 of {file} is {found}, expected {wanted}; bring the recipe's revision there"
    unit = units(folders, **by_digest(images["right"]))[0]
    assert rank_checks.refusals(Host(), unit) == [f"Rank 0 on spark0: {said}"]


def test_a_busy_port_and_a_stale_container_are_refused(images: dict[str, Made], folders: dict[str, str]) -> None:
    unit = units(folders, **by_digest(images["right"]))[0]
    with busy():
        assert rank_checks.refusals_now(Host(), unit) == [
            f"Rank 0 on spark0: port {PORT} is in use, expected free; stop what listens there: "
            f"ss -ltnp 'sport = {PORT}'"
        ]
    with stale(unit):
        assert rank_checks.refusals_now(Host(), unit) == [
            f"Rank 0 on spark0: a container {unit.container} is there already, created; look at it, then remove it: "
            f"docker rm --force {unit.container}"
        ]
    assert rank_checks.refusals_now(Host(), unit) == []
