"""Community recipes become ours, as files for review; ``python -m tests.unit.recipe.test_import`` writes them again.

``community/given`` are foreign recipes; ``community/made`` has the report of each, and its recipe where no part is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.plugin_utils.community import (
    carry,
    importing,
    spark_vllm_docker,
    sparkrun,
)
from ansible_collections.sparkring.cluster.plugins.plugin_utils.community.command import Command, parse
from ansible_collections.sparkring.cluster.plugins.plugin_utils.community.found import Source
from ansible_collections.sparkring.cluster.plugins.plugin_utils.community.importing import CommunityError, Imported
from ansible_collections.sparkring.cluster.plugins.plugin_utils.community.report import Report
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import model, reader
from tests.unit.recipe.examples import units

COMMUNITY = Path(__file__).with_name("community")
GIVEN = sorted((COMMUNITY / "given").glob("*.yaml"))
MADE = COMMUNITY / "made"
REFUSED = {"spark-vllm-docker-own-entrypoint", "sparkrun-minimax-m3-sglang", "sparkrun-ornith-taskset"}
CARRIED = [path for path in GIVEN if path.stem not in REFUSED]
SOUND: dict[int, dict[str, Any]] = {
    1: {
        "recipe_version": "1",
        "name": "A recipe",
        "model": "a/b",
        "container": "c",
        "defaults": {"port": 8000},
        "command": "vllm serve a/b -tp 2 --port {port}",
        "env": {"A": "b"},
    },
    2: {
        "recipe_version": "2",
        "model": "a/b",
        "runtime": "vllm",
        "container": "c",
        "command": "vllm serve {model} -tp 2",
    },
}


def made(path: Path, to: Path | None = None, layout: str | None = None) -> Imported:
    return importing.run(path, to, MADE, layout)


def told(imported: Imported) -> str:
    return "\n".join(line.text for line in imported.report.ordered) + f"\n{ending(imported)}\n"


def ending(imported: Imported) -> str:
    return imported.verdict.replace(f"{MADE}/", "")


@pytest.mark.parametrize("path", GIVEN, ids=lambda path: path.stem)
def test_report(path: Path) -> None:
    assert (MADE / f"{path.stem}.txt").read_text(encoding="utf-8") == told(made(path))


@pytest.mark.parametrize("path", CARRIED, ids=lambda path: path.stem)
def test_recipe(path: Path) -> None:
    """It stands as it would be made, so a second import changes nothing."""
    imported = made(path)
    assert imported.text == (MADE / f"{path.stem}.yml").read_text(encoding="utf-8")
    assert not imported.changed


def test_no_other_file_is_kept() -> None:
    wanted = {f"{path.stem}.txt" for path in GIVEN} | {f"{path.stem}.yml" for path in CARRIED}
    assert {path.name for path in MADE.iterdir()} == wanted
    assert {path.stem for path in GIVEN if made(path).text is None} == REFUSED


@pytest.mark.parametrize("path", CARRIED, ids=lambda path: path.stem)
def test_our_reader_takes_it_and_says_what_it_lacks(path: Path) -> None:
    recipe = reader.read(MADE / f"{path.stem}.yml")
    ends = ending(made(path))
    assert ends.endswith(f"unknown: {', '.join(recipe.lacking)}.") if recipe.lacking else "is complete" in ends


@pytest.mark.parametrize("path", CARRIED, ids=lambda path: path.stem)
def test_nothing_is_invented(path: Path) -> None:
    """Hashes, digests and commits of the recipe stand in the file that it was made from."""
    recipe, given = reader.read(MADE / f"{path.stem}.yml"), path.read_text(encoding="utf-8")
    assert recipe.model.files == {} and recipe.image.id is None and recipe.model.licence is None
    for known in (recipe.model.revision, recipe.image.digest, recipe.draft and recipe.draft.revision):
        assert known is None or known in given


def parts(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from parts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from parts(item, f"{path}.{number}")
    else:
        yield path


@pytest.mark.parametrize("path", CARRIED, ids=lambda path: path.stem)
def test_nothing_is_passed_over_in_silence(path: Path) -> None:
    reported = {line.path for line in made(path).report.found}
    for part in parts(yaml.safe_load(path.read_text(encoding="utf-8"))):
        names = part.split(".")
        assert any(".".join(names[:length]) in reported for length in range(1, len(names) + 1)), part


def foreign(path: Path) -> Command:
    source = Source(path, *reader.content_of(path))
    format_of = spark_vllm_docker if source.content["recipe_version"] == "1" else sparkrun
    found = format_of.read(source, Report()).command
    assert found is not None
    return found


def plain(words: list[str]) -> list[Any]:
    return [json.loads(word) if word.startswith("{") else word for word in words]


@pytest.mark.parametrize("path", CARRIED, ids=lambda path: path.stem)
def test_the_engine_is_told_the_same(path: Path) -> None:
    """The command of the head's unit has every flag of the foreign command, but for those that the report names."""
    recipe = reader.read(MADE / f"{path.stem}.yml")
    ours = parse(["vllm", "serve", *units(recipe)[0].command]).flags
    gone = {line.path.removeprefix("command.") for line in made(path).report.found if line.kind == "dropped"}
    human = {"128K": "131072", "8G": "8589934592"}
    for flag, words in foreign(path).flags.items():
        if flag == "--served-model-name" or flag not in gone | {"--revision", "--master-port"}:
            wanted, seen = plain(words), plain(ours[flag])
            if flag == "--speculative-config" and "model" in wanted[0]:
                assert seen[0].pop("model") == "/models/" + wanted[0].pop("model").partition("/")[2]
            if flag == "--served-model-name":
                wanted = wanted[:1]
            assert [human.get(str(word), word) for word in wanted] == seen, flag


def test_every_flag_that_the_renderer_writes_is_handled() -> None:
    assert carry.WITHOUT.keys() | carry.SPECIAL.keys() | carry.PARALLEL.keys() >= model.LAUNCH_FLAGS


def write(folder: Path, case: dict[str, Any]) -> Path:
    path = folder / "community.yaml"
    if "text" in case:
        path.write_text(case["text"], encoding="utf-8")
        return path
    content = {**SOUND[case["of"]], **case.get("change", {})}
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in kept.items()), encoding="utf-8")
    return path


def cases(name: str) -> list[Any]:
    found = yaml.safe_load((COMMUNITY / name).read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["name"]) for case in found]


@pytest.mark.parametrize("case", cases("refusals.yml"))
def test_what_cannot_be_carried(case: dict[str, Any], tmp_path: Path) -> None:
    source, to = write(tmp_path, case), tmp_path / "made.yml"
    if "message" in case:
        with pytest.raises((CommunityError, reader.RecipeError)) as raised:
            made(source, to, case.get("layout"))
        assert str(raised.value).replace(f"{tmp_path}/", "") == case["message"]
    else:
        imported = made(source, to, case.get("layout"))
        assert [line.text for line in imported.report.refusals] == case["refused"]
        count = len(case["refused"])
        assert imported.verdict == (
            f"community.yaml: {count} part{'s' * (count > 1)} cannot be carried, so nothing is written."
        )
        imported.write()
    assert not to.exists()


@pytest.mark.parametrize("case", cases("drops.yml"))
def test_what_is_left_behind(case: dict[str, Any], tmp_path: Path) -> None:
    imported = made(write(tmp_path, case), tmp_path / "made.yml", case.get("layout"))
    assert imported.report.refusals == []
    assert case["line"] in imported.lines
    for secret in ("secret", "0123456789abcdefghij"):
        assert secret not in (imported.text or "")
        assert secret not in "".join(imported.lines).replace("a secret", "").replace("secrets", "")


def test_a_file_that_stands_is_not_written_over(tmp_path: Path) -> None:
    source, to = write(tmp_path, {"of": 1}), tmp_path / "made.yml"
    first = made(source, to)
    assert first.changed and first.diff()["before"] == "" and first.diff()["after"] == first.text
    first.write()
    again = made(source, to)
    assert not again.changed and again.diff()["before"] == again.diff()["after"] == first.text
    to.write_text("mine\n", encoding="utf-8")
    with pytest.raises(CommunityError) as raised:
        made(source, to)
    assert (
        str(raised.value) == f"{to} exists and is another recipe: name another with sparkring_import_to, or remove it."
    )
    assert to.read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Qwen3.8_Flash Next.yaml", "qwen3.8-flash-next"), ("-x-.yml", "x"), ("!.yaml", "imported"), ("a" * 80, "a" * 63)],
)
def test_the_name_of_a_file_becomes_an_id(name: str, expected: str) -> None:
    assert importing.slug(Path(name)) == expected


@pytest.mark.parametrize("name", ["made.yaml", "Made.yml", ".yml"])
def test_a_place_that_holds_no_recipe(name: str, tmp_path: Path) -> None:
    with pytest.raises(CommunityError, match="cannot hold a recipe: name a file of small letters"):
        made(write(tmp_path, {"of": 1}), tmp_path / name)


if __name__ == "__main__":
    MADE.mkdir(exist_ok=True)
    for old in MADE.iterdir():
        old.unlink()
    for each in GIVEN:
        fresh = made(each)
        fresh.write()
        (MADE / f"{each.stem}.txt").write_text(told(fresh), encoding="utf-8")
