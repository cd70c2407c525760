"""What holds of every rendered unit, whatever the recipe."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import RankUnit
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import render, systemd, words
from tests.unit.recipe.examples import ALL, RENDERED, exec_line, ring, units, unquoted

EXAMPLE = units(ALL["deepseek-v4-flash-0731"])[0]
VENV = units(ALL["deepseek-v4-flash-0731"], engine="venv", venv="/opt/vllm")[0]


@pytest.mark.parametrize("recipe", RENDERED)
def test_ranks_are_equal_but_for_the_known(recipe: str) -> None:
    made = units(ALL[recipe])
    assert [unit.rank for unit in made] == list(range(ALL[recipe].parallel.ranks))
    assert len({unit.invariant for unit in made}) == 1
    assert [unit.command.count("--headless") for unit in made] == [0] + [1] * (len(made) - 1)
    assert [unit.api is not None for unit in made] == [True] + [False] * (len(made) - 1)


@pytest.mark.parametrize("recipe", RENDERED)
def test_containers_are_confined(recipe: str) -> None:
    for unit in units(ALL[recipe]):
        assert "--privileged" not in unit.options
        assert unit.options[unit.options.index("--cap-drop") + 1] == "ALL"
        assert "no-new-privileges" in unit.options
        assert "0.0.0.0" not in unit.command
        assert not [name for name in unit.environment if name.endswith(("_KEY", "_TOKEN"))]
        words_run = unquoted(exec_line(unit, "ExecStart"))
        assert words_run[:2] == ["/usr/bin/docker", "run"]
        assert words_run[-len(unit.command) :] == unit.command
        assert unit.container is not None and unit.container in exec_line(unit, "ExecStopPost")


@pytest.mark.parametrize("recipe", RENDERED)
def test_nothing_is_left_in_braces(recipe: str) -> None:
    for unit in units(ALL[recipe]):
        for value in [*unit.command, *unit.environment.values()]:
            assert not words.names(value.replace('"', "")) & (words.RECIPE.keys() | words.RANK.keys()), value


def test_a_difference_that_is_not_known_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    original = render._Rank._arguments
    monkeypatch.setattr(render._Rank, "_arguments", lambda rank: [*original(rank), "--seed", str(rank.rank)])
    with pytest.raises(AssertionError, match="ranks differ in what must be equal on all"):
        units(ALL["deepseek-v4-flash-0731"])


def test_the_same_input_gives_the_same_bytes() -> None:
    again = units(ALL["deepseek-v4-flash-0731"])
    assert documents.to_text(units(ALL["deepseek-v4-flash-0731"])) == documents.to_text(again)


def test_a_unit_is_read_back() -> None:
    assert RankUnit.from_plain(documents.to_plain(EXAMPLE)) == EXAMPLE


def test_a_venv_runs_the_hosts_own_engine() -> None:
    assert VENV.command[:3] == [
        "/opt/vllm/bin/vllm",
        "serve",
        "/var/lib/sparkring/models/deepseek-ai/DeepSeek-V4-Flash-0731",
    ]
    assert (VENV.container, VENV.image, VENV.options) == (None, None, [])
    assert "docker" not in systemd.unit_text(VENV)


def test_a_recipe_of_another_ring_is_refused_by_its_names() -> None:
    with pytest.raises(render.SettingsError, match=r"needs \{peer0\}, which has no value on ring home, pair"):
        render.units(ALL["glm53-flash-spark-tp4-dcp1"], ring("pair"), render.Settings())


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30)


@given(st.lists(TEXT.filter(bool), max_size=8))
def test_words_survive_systemd(given_words: list[str]) -> None:
    unit = replace(VENV, command=["/bin/true", *given_words])
    text = systemd.unit_text(unit)
    start = text.index("ExecStart=") + len("ExecStart=")
    assert unquoted(text[start : text.index("\nNoNewPrivileges")]) == ["/bin/true", *given_words]


@given(TEXT)
def test_values_survive_an_environment_file(value: str) -> None:
    text = systemd.environment_text(replace(VENV, environment={"A": value}))
    assert shlex.split(text.removeprefix("A=")) == [value]
    assert systemd.environment_text(replace(EXAMPLE, environment={"A": value})) == f"A={value}\n"


@given(st.recursive(TEXT | st.integers() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)))
def test_text_without_names_is_filled_in_unchanged(value: Any) -> None:
    assert words.fill(_escaped(value), {}) == value


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value


def test_a_name_alone_keeps_its_type() -> None:
    assert words.fill({"a": ["{captures}", "x{rank}"]}, {"captures": [1, 2], "rank": 3}) == {"a": [[1, 2], "x3"]}
