"""Every rendered command line and environment against what the reference project's profiles say, rank for rank."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import RankUnit
from tests.unit.recipe.examples import ALL, RENDERED, units

REFERENCE = yaml.safe_load((Path(__file__).resolve().parents[2] / "fixtures" / "reference_recipes.yml").read_text())
PARTIAL = {recipe for recipe, entry in REFERENCE.items() if entry["provenance"] == "recipe values only"}
"""Of these only some values are recorded; the others are those of the base."""

LAUNCH = {"--nnodes", "--distributed-executor-backend"}
"""Where a profile is silent about them (one is, of a switched ring), several ranks still need them."""
LOOPBACK = "127.0.0.1"
"""For ``--host 0.0.0.0``: the API is not opened to the network without authentication (DESIGN 9)."""

CYCLE = ["198.18.0.1", "198.18.0.2", "198.18.4.1", "198.18.4.2"]
"""Fabric addresses of the ranks of the example four-cycle, on the cables 0-1 and 2-3."""
NAMESPACE = re.compile(r"<(image-bound|receipt) namespace>")
HCA_FORMS = {
    "<exactly two cycle-facing devices>": "rocep1s0f0,rocep1s0f1",
    "<site ring ports>": "rocep1s0f0,rocep1s0f1",
    "<one device>": "rocep1s0f0",
    "<site; template default rocep1s0f0,rocep1s0f1>": "rocep1s0f0,rocep1s0f1",
    "<site, must start with =>": "=rocep1s0f0",
}
NARROWED = {"B12X_ROCE_HCA": "rocep1s0f0,roceP2p1s0f0", "B12X_ROCE_PEER_HCA_MAP": {0: "1=0/1", 1: "0=0/1"}}
"""On a pair only the cabled functions are named, as the reference's own later renderer does."""


def place(recipe: str, rank: int) -> str:
    """Address of a rank of the example ring on the recipe's rendezvous network."""
    if ALL[recipe].transport.rendezvous == "management":
        return f"192.168.1.2{rank}"
    return f"198.18.0.{rank + 1}" if ALL[recipe].ring.layout == "pair" else CYCLE[rank]


def given(unit: RankUnit) -> dict[str, Any]:
    """The rendered command line as flags with values, JSON read."""
    made: dict[str, Any] = {}
    words = list(unit.command)
    if words and not words[0].startswith("-"):
        made["model"] = words.pop(0)
    while words:
        flag = words.pop(0)
        if words and not words[0].startswith("--"):
            word = words.pop(0)
            made[flag] = json.loads(word) if word.startswith("{") else word
        else:
            made[flag] = True
    return made


def expected(recipe: str, rank: int) -> dict[str, Any]:
    """The recorded flags of one rank, with what is known of the example ring put in."""
    made = {}
    for flag, value in REFERENCE[recipe]["arguments"].items():
        if value is None:
            continue
        made[flag] = value if isinstance(value, (bool, dict)) else str(value)
    if "--host" in made:
        made["--host"] = LOOPBACK
    if rank == 0 and ALL[recipe].api is not None:  # some pass them to the head alone
        made |= {"--host": LOOPBACK, "--port": str(ALL[recipe].api.port)}
    made |= {"--node-rank": str(rank), "--master-addr": place(recipe, 0)}
    if rank:
        made["--headless"] = True
    return made


def settled(value: Any, unit: RankUnit) -> Any:
    """A recorded value with the holes filled that only an image or a model fills."""
    recipe = ALL[unit.recipe]
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if f"arguments.--hf-overrides.{key}" not in recipe.unknown}
        return {key: settled(item, unit) for key, item in kept.items()}
    if value == "1..40":
        return list(range(1, 41))
    if value == "<container model path>":
        return "/models/target"
    if isinstance(value, str) and NAMESPACE.search(value):
        known = (recipe.image.id or recipe.image.digest or "")[7:19]
        return NAMESPACE.sub(f"{known}-{recipe.id}", value)
    return value


@pytest.mark.parametrize("recipe", [name for name in RENDERED if name not in PARTIAL])
def test_arguments_are_equal(recipe: str) -> None:
    for unit in units(ALL[recipe]):
        made, known = given(unit), expected(recipe, unit.rank)
        for flag in LAUNCH - known.keys():
            made.pop(flag, None)
        if recipe == "glm52-exl3-r7-3.5bpw":
            made.pop("model")  # its path in the container is not recorded
        assert made == {flag: settled(value, unit) for flag, value in known.items()}


@pytest.mark.parametrize("recipe", sorted(PARTIAL & set(RENDERED)))
def test_recorded_arguments_of_compositions_are_equal(recipe: str) -> None:
    unit = units(ALL[recipe])[0]
    made, known = given(unit), expected(recipe, 0)
    assert {flag: made[flag] for flag in known} == known


@pytest.mark.parametrize("recipe", [name for name in RENDERED if name not in PARTIAL])
def test_environment_is_equal(recipe: str) -> None:
    known, found = REFERENCE[recipe]["environment"], ALL[recipe]
    for unit in units(found):
        made = dict.fromkeys(unit.gids, "<gid>") | unit.environment
        wanted = {name: settled(value, unit) for name, value in known["common"].items()}
        wanted |= known["per_rank"] or {}
        wanted = {name: value for name, value in wanted.items() if f"environment.{name}" not in found.unknown}
        assert made == {name: of_rank(name, value, unit) for name, value in wanted.items()}


def of_rank(name: str, value: Any, unit: RankUnit) -> Any:
    """The recorded words for one rank of the example ring; ``<gid>`` where the host finds the index at each start."""
    recipe, rank = ALL[unit.recipe], unit.rank
    fabric = recipe.transport.rendezvous == "fabric"
    pair = recipe.ring.layout == "pair"
    netdev = ("enp1s0f0np0" if pair or rank % 2 == 0 else "enp1s0f1np1") if fabric else "enP7s7"
    if name == "NCCL_IB_GID_INDEX" or "_GID" in name:
        return "<gid>" if name in unit.gids else value
    if name in NARROWED and pair:
        narrowed = NARROWED[name]
        return narrowed[rank] if isinstance(narrowed, dict) else narrowed
    if name == "B12X_ROCE_PEER_HCA_MAP":
        return value[f"rank{rank}"]
    if name == "NCCL_IB_HCA":
        if "all four functions" in value:
            return value[value.index("=") : -1]
        return HCA_FORMS.get(value, value)
    if name in ("NODE_RANK", "RANK", "SPARKRING_NODE_RANK"):
        return str(rank)
    if name == "VLLM_HOST_IP":
        return place(unit.recipe, rank)
    if name in ("MASTER_ADDR", "RANK0_RENDEZVOUS_ADDR"):
        return place(unit.recipe, 0)
    if name.endswith("SOCKET_IFNAME"):
        return netdev
    if value in ("<site>", "per-rank status file") or "<RANK>" in str(value):
        return unit.environment[name]  # recorded without a form; test_faced_ranks_face_back judges them
    return value


CABLES = {0: (1, 3), 1: (0, 2), 2: (3, 1), 3: (2, 0)}
"""Whom each rank of a four-cycle faces: its number XOR 1, then XOR 3."""


@pytest.mark.parametrize("second", ["", "BIDIRECTIONAL_PREFILL_SECONDARY_"])
def test_faced_ranks_face_back(second: str) -> None:
    by_rank = {unit.rank: unit for unit in units(ALL["glm53-flash-spark-tp4-dcp1"])}
    mine = {
        rank: [unit.environment[f"SPARK_TP4_{second}PEER{slot}"] for slot in (0, 1)] for rank, unit in by_rank.items()
    }
    subnets = {rank: [address.rpartition(".")[0] for address in peers] for rank, peers in mine.items()}
    for rank, faced in CABLES.items():
        for slot, other in enumerate(faced):
            assert subnets[rank][slot] == subnets[other][slot], (rank, other)
            assert mine[rank][slot] != mine[other][slot]
            device = by_rank[rank].environment[f"SPARK_TP4_{second}DEVICE{slot}"]
            assert by_rank[rank].gids[f"SPARK_TP4_{second}GID{slot}"] == [device]
