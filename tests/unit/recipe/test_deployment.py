"""What is refused before any host is asked, and what the hosts of a ring are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import deployment
from tests.unit.recipe.examples import ALL, RECIPES, ring

SERVED = "glm53-flash-spark-tp2-dcp1"
PLAN = ring(ALL[SERVED].ring.layout)


def receipt(folder: Path, made: str, digest: str = PLAN.digest, ok: bool = True) -> None:
    target = folder / PLAN.ring / "receipts" / f"{made}-verify.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"plan_digest": digest, "ok": ok, "summary": "1 of 8 checks fails"}))


def refusal(folder: Path, recipe: str | None, **settings: object) -> str:
    with pytest.raises(deployment.DeploymentError) as refused:
        deployment.make(PLAN, RECIPES, folder, recipe, settings)
    return str(refused.value)


def test_each_host_gets_its_rank(tmp_path: Path) -> None:
    receipt(tmp_path, "2026-12-01T000000Z", ok=False)
    receipt(tmp_path, "2026-12-02T000000Z")
    made = deployment.make(PLAN, RECIPES, tmp_path, SERVED, {})
    assert {host: given["unit"]["rank"] for host, given in made.ranks.items()} == {"spark0": 0, "spark1": 1}
    assert made.lines[0].startswith(f"Ring home: {SERVED} serves recipe {SERVED}, ")
    for given in made.ranks.values():
        assert given["unit"]["deployment"] == SERVED
        assert given["unit_text"].endswith("Restart=no\n")


def test_a_library_is_brought_to_each_host(tmp_path: Path) -> None:
    receipt(tmp_path, "2026-12-02T000000Z")
    nccl = {"id": "mine", "version": "2.32.3", "sha256": "ab" * 32, "patches": [], "source": "x", "date": "2026-12-01"}
    made = deployment.make(PLAN, RECIPES, tmp_path, "deepseek-v4-flash-0731-pair", {"nccl": nccl})
    assert "  NCCL: mine, version 2.32.3, brought by `sparkring transport`" in made.lines
    for given in made.ranks.values():
        path = f"/usr/local/lib/sparkring-node/nccl/{nccl['sha256']}/libnccl.so.2"
        wanted = {"path": path, "sha256": nccl["sha256"], "version": "2.32.3"}
        assert given["library"] == {**wanted, "engine_image": given["unit"]["image"]["run"]}
        assert {"path": path, "sha256": nccl["sha256"]} in given["unit"]["files"]
    assert deployment.make(PLAN, RECIPES, tmp_path, SERVED, {}).ranks["spark0"]["library"] is None


def test_a_ring_names_its_recipe(tmp_path: Path) -> None:
    assert refusal(tmp_path, None) == (
        "Ring home names no recipe: set sparkring_recipe to one of those that `sparkring recipes` lists as FITS."
    )


def test_what_does_not_fit_says_what_would(tmp_path: Path) -> None:
    said = refusal(tmp_path, "glm53-flash-spark-tp4-dcp1")
    assert said.startswith(
        "Recipe glm53-flash-spark-tp4-dcp1 cannot be served on ring home: it is served on a cycle-4, and this ring is "
        "a pair. Recipes for this ring: "
    )
    assert SERVED in said


@pytest.mark.parametrize(
    ("receipts", "sentence"),
    [
        ([], "Ring home was never verified: run mesh-setup, or verify where it is laid."),
        (
            [("2026-12-02T000000Z", "sha256:old", True)],
            f"Ring home was verified on plan sha256:old, and the plan is {PLAN.digest}: run mesh-setup, or verify "
            "where it is laid.",
        ),
        (
            [("2026-12-01T000000Z", PLAN.digest, True), ("2026-12-02T000000Z", PLAN.digest, False)],
            "The last verification of ring home has findings (1 of 8 checks fails): mend them, then run verify.",
        ),
    ],
)
def test_a_mesh_is_verified_first(tmp_path: Path, receipts: list[tuple[str, str, bool]], sentence: str) -> None:
    for made, digest, ok in receipts:
        receipt(tmp_path, made, digest, ok)
    assert refusal(tmp_path, SERVED) == sentence
