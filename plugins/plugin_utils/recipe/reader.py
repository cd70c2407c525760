"""Reads recipe files: what is wrong in one is said with its file, line and field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe

SUFFIX = ".yml"
Shape = TypeVar("Shape", bound=BaseModel)
MERGED = ("arguments", "environment")
"""Sections that a recipe which extends another changes name by name; of all others it restates the whole."""


class RecipeError(ValueError):
    """One sentence: file, line, field, what is wrong."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # built with libyaml or without
    """YAML that refuses a key written twice."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a key is a list or a mapping; quote braces that are text", key.start_mark
            )
        name, line = key.value, key.start_mark.line + 1
        if name in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"{name} is written twice, first in line {seen[name]}", key.start_mark
            )
        seen[name] = line
    made: dict[Any, Any] = loader.construct_mapping(node, deep=True)
    return made


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


@cache
def read(path: Path) -> Recipe:
    """The recipe in a file, with what it takes from its base; raises RecipeError."""
    content, lines = content_of(path)
    if (base := content.get("extends")) is not None:
        content = _extended(path, content, lines, str(base))
    recipe = validated(Recipe, path, content, lines)
    if recipe.id != path.name.removesuffix(SUFFIX):
        raise RecipeError(f"{path}:{lines.get(('id',), 1)}: id: {recipe.id} is not the file's name; make them equal.")
    return recipe


def read_all(folder: Path) -> list[Recipe]:
    """Every recipe of a folder, by id; raises RecipeError for the first that is wrong."""
    return [read(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]


def find(folder: Path, recipe_id: str) -> Recipe:
    """The recipe of an id; raises RecipeError, naming those that there are."""
    path = folder / f"{recipe_id}{SUFFIX}"
    if "/" in recipe_id or not path.is_file():
        known = ", ".join(sorted(item.name.removesuffix(SUFFIX) for item in folder.glob(f"*{SUFFIX}")))
        raise RecipeError(f"There is no recipe {recipe_id} in {folder}; the recipes are {known or 'none'}.")
    return read(path)


def content_of(path: Path) -> tuple[dict[str, Any], dict[tuple[str, ...], int]]:
    """What stands in a file, and the line of each field; raises RecipeError where it is no mapping in sound YAML."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        content = loader.construct_document(node) if node is not None else None
    except OSError as error:
        raise RecipeError(f"{path}: it cannot be read ({error.strerror}); name a recipe file.") from error
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: it is not UTF-8 text; save it as such.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise RecipeError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem}.") from error
    except yaml.YAMLError as error:
        raise RecipeError(f"{path}: it holds a character that YAML does not allow; remove it.") from error
    if not isinstance(content, dict) or node is None:
        raise RecipeError(f"{path}:1: a recipe is a mapping with schema, id, title and so on.")
    return content, _lines(node)


def _lines(node: yaml.Node, place: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    found = {place: node.start_mark.line + 1}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            found |= _lines(value, (*place, str(key.value)))
            found[*place, str(key.value)] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            found |= _lines(value, (*place, str(number)))
    return found


def _extended(path: Path, content: dict[str, Any], lines: dict[tuple[str, ...], int], base_id: str) -> dict[str, Any]:
    where = f"{path}:{lines.get(('extends',), 1)}: extends:"
    base_path = path.with_name(base_id + SUFFIX)
    if "/" in base_id or not base_path.is_file():
        raise RecipeError(f"{where} there is no recipe {base_id} beside this one.")
    base, base_lines = content_of(base_path)
    if base.get("extends") is not None:
        raise RecipeError(f"{where} {base_id} extends {base['extends']} itself; extend that one.")
    validated(Recipe, base_path, base, base_lines)
    merged = {**base, **content}
    for section in MERGED:
        merged[section] = _merged(base.get(section), content.get(section, {}))
    for field in ("repository", "revision"):
        ours, theirs = (item.get("model", {}).get(field) for item in (merged, base))
        if ours != theirs:
            raise RecipeError(
                f"{where} model.{field} is {ours}, and that of {base_id} is {theirs}; they must be equal."
            )
    return merged


def _merged(base: Any, change: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        return change if change is not None else None
    made = dict(base)
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made[key], value) if key in made else value
    return made


def validated(shape: type[Shape], path: Path, content: dict[str, Any], lines: dict[tuple[str, ...], int]) -> Shape:
    """The content as a model; raises RecipeError, naming line and field, for the first thing that is wrong."""
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = tuple(str(part) for part in first["loc"])
        if first["type"] == "value_error":  # said by the model, the field in front
            said = first["msg"].removeprefix("Value error, ")
            aimed = (*place, *said.split(" ", 1)[0].rstrip(":").split("."))
            said = ": ".join(filter(None, [".".join(place), said]))
        else:
            while place and place not in lines and first["type"] != "missing":
                place = place[:-1]  # the last parts name a branch of a union, not a field
            aimed, said = place, f"{'.'.join(place)}: {_sentence(first)}"
        line = next((lines[key] for key in _parents(aimed) if key in lines), 1)
        raise RecipeError(f"{path}:{line}: {said}.") from error


def _parents(place: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [place[:length] for length in range(len(place), 0, -1)]


def _sentence(error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "missing":
        return "it is missing; write it"
    if kind == "extra_forbidden":
        return "this field is unknown; remove it, or see recipes/schema.json"
    if kind == "string_type":
        return f"a text is needed, not {json.dumps(error['input'], default=str)}; quote it"
    message = str(error["msg"])
    return message[0].lower() + message[1:]
