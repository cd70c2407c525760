"""What is wrong with a recipe file is said in one sentence with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import reader
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.reader import RecipeError
from tests.unit.recipe.examples import ALL, RECIPES

CASES = yaml.safe_load(Path(__file__).with_name("refusals.yml").read_text(encoding="utf-8"))
SOUND: dict[str, Any] = {
    "schema": "sparkring.recipe/1",
    "id": "bad",
    "title": "A recipe",
    "lifecycle": "current",
    "status": {"level": "implemented"},
    "model": {"repository": "owner/model"},
    "ring": {"layout": "cycle-4"},
    "parallel": {"tp": 4},
    "transport": {"provider": "nccl", "collectives": "nccl"},
    "arguments": {"--dtype": "auto"},
    "environment": {"NCCL_DEBUG": "WARN"},
    "api": {"port": 8000, "name": "model"},
    "ports": {"rendezvous": 29500},
    "limits": {"context": 4096},
    "kv": {"bytes_per_rank": 1024},
    "container": {"mounts": [{"of": "model", "target": "/models"}]},
}
"""One field a line when it is written, so that every message's line can be foretold."""


def write(path: Path, content: dict[str, Any]) -> Path:
    """A file with one line for each field, in order."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in content.items())
    path.write_text(text, encoding="utf-8")
    return path


def changed(change: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**SOUND, **change}.items() if value is not None}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_bad_recipe(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    if "text" in case:
        path.write_text(case["text"], encoding="utf-8")
    else:
        write(path, changed(case["change"]))
    with pytest.raises(RecipeError) as raised:
        reader.read(path)
    assert str(raised.value).replace(f"{tmp_path}/", "") == case["message"]


def test_the_sound_recipe_is_sound(tmp_path: Path) -> None:
    assert reader.read(write(tmp_path / "bad.yml", SOUND)).id == "bad"


def test_not_text(tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecipeError, match=r"bad\.yml: it is not UTF-8 text; save it as such\.$"):
        reader.read(tmp_path / "bad.yml")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"bad\.yml: it cannot be read \(No such file or directory\)"):
        reader.read(tmp_path / "bad.yml")


def test_unknown_id_names_the_known(tmp_path: Path) -> None:
    write(tmp_path / "bad.yml", SOUND)
    with pytest.raises(RecipeError, match=r"^There is no recipe worse in .*; the recipes are bad\.$"):
        reader.find(tmp_path, "worse")
    with pytest.raises(RecipeError, match=r"^There is no recipe \.\./bad "):
        reader.find(tmp_path, "../bad")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "base.yml", changed({"id": "base", "arguments": {"--a": {"b": 1, "c": 2}, "--d": 3}}))


def test_a_recipe_changes_its_base_name_by_name(base: Path) -> None:
    child = {"extends": "base", "id": "child", "arguments": {"--a": {"b": None, "e": 4}}, "title": "Child"}
    made = reader.read(write(base.with_name("child.yml"), child))
    assert made.arguments == {"--a": {"c": 2, "e": 4}, "--d": 3}
    assert (made.title, made.parallel.tp, made.environment) == ("Child", 4, {"NCCL_DEBUG": "WARN"})


def test_a_recipe_restates_other_sections_whole(base: Path) -> None:
    child = {"extends": "base", "id": "child", "limits": {"sequences": 2}}
    assert reader.read(write(base.with_name("child.yml"), child)).limits.context is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model": {"repository": "owner/other"}},
            "model.repository is owner/other, and that of base is owner/model; they must be equal.",
        ),
        ({"extends": "middle"}, "middle extends base itself; extend that one."),
    ],
)
def test_base_that_cannot_be(base: Path, change: dict[str, Any], message: str) -> None:
    write(base.with_name("middle.yml"), {"extends": "base", "id": "middle"})
    child = write(base.with_name("child.yml"), {"extends": "base", "id": "child", **change})
    with pytest.raises(RecipeError) as raised:
        reader.read(child)
    assert str(raised.value) == f"{child}:1: extends: {message}"


def test_a_wrong_base_is_named_itself(base: Path) -> None:
    write(base, changed({"id": "base", "limits": {"context": 0}}))
    child = write(base.with_name("child.yml"), {"extends": "base", "id": "child"})
    with pytest.raises(RecipeError, match=r"base\.yml:14: limits\.context: input should be greater"):
        reader.read(child)


def test_every_recipe_of_the_collection_is_sound() -> None:
    assert len(ALL) == len(list(RECIPES.glob("*.yml"))) >= 32


def test_the_recipes_that_tests_serve_are_whole() -> None:
    served = Path(__file__).resolve().parents[2] / "serving" / "recipes"
    assert {recipe.id for recipe in reader.read_all(served)} == {path.stem for path in served.glob("*.yml")}
