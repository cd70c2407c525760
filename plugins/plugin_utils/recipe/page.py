"""docs/recipes.md: every recipe in a table, the names that may stand in braces, and the settings of an operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import words
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.settings import PLACES, Settings

GIB = 1 << 30
HEAD = """# Recipes

Written by `make schemas` from `recipes/` and the recipe library.

A recipe says how one model is served: checkpoint, image, the ring it needs, limits, and the command line of its engine.
`sparkring recipes -i INVENTORY` lists each recipe against your ring: what fits, what is needed first, what cannot be
served and why. Where a value is not known it is absent; a recipe that lacks one that is needed is incomplete and cannot
be served. All of them come from the reference project's profiles. None was run by this project on its hardware: their
evidence and status are the reference's own.

A status belongs to exact settings. Whoever changes one serves an `implemented-unqualified-configuration`, and its units
say what was changed.
"""
COLUMNS = ("Recipe", "Ring", "TP/DCP", "Context", "Sequences", "KV GiB a rank", "Status", "Unknown", "Servable")


def text(recipes: Sequence[Recipe]) -> str:
    """The page."""
    return "\n".join(_lines(recipes)) + "\n"


def _lines(recipes: Sequence[Recipe]) -> Iterator[str]:
    yield HEAD
    for lifecycle, title in (("current", "Current"), ("retired", "Retired"), ("superseded", "Superseded")):
        yield f"## {title}\n"
        yield "| " + " | ".join(COLUMNS) + " |"
        yield "|" + "---|" * len(COLUMNS)
        for recipe in recipes:
            if recipe.lifecycle == lifecycle:
                yield "| " + " | ".join(_row(recipe)) + " |"
        yield ""
    yield "`Unknown` counts the fields that are not recorded. What makes a recipe incomplete:\n"
    for recipe in recipes:
        if recipe.lacking:
            yield f"- `{recipe.id}`: {', '.join(f'`{name}`' for name in recipe.lacking)}"
    yield "\n## Names in braces\n"
    yield "Arguments and environment may carry these; `{{` is a brace. The first are equal on all ranks:\n"
    yield from _names(words.RECIPE)
    yield "\nThese may differ from rank to rank, and nothing else does:\n"
    yield from _names(words.RANK)
    yield "\n## Settings\n"
    yield "In the ring's group variables, under `sparkring_settings`:\n"
    yield "| Setting | Takes the status away | What it is |"
    yield "|---|---|---|"
    counted = {*PLACES, "sparkcache", "image", "arguments", "environment", "nccl", "engine"}
    for name, field in Settings.model_fields.items():
        place = ".".join(PLACES.get(name, ()))
        said = field.description or (f"the recipe's `{place}`" if place else f"the recipe's `{name}`")
        yield f"| `{name}` | {'yes' if name in counted else 'no'} | {said} |"


def _row(recipe: Recipe) -> Iterator[str]:
    parallel, limits, kv = recipe.parallel, recipe.limits, recipe.kv.bytes_per_rank
    yield f"[`{recipe.id}`](../recipes/{recipe.id}.yml)"
    yield recipe.ring.layout
    yield f"{parallel.tp}/{parallel.dcp or 1}"
    yield str(limits.context or "?")
    yield str(limits.sequences or "?")
    yield f"{kv / GIB:.2f}".rstrip("0").rstrip(".") if kv else "?"
    yield recipe.status.level
    yield str(len(recipe.unknowns))
    yield "no" if recipe.lacking else "yes"


def _names(names: dict[str, str]) -> Iterator[str]:
    previous = ""
    for name, said in names.items():
        if said:
            previous = name
            yield f"- `{{{name}}}`: {said}"
        elif previous == "sparkcache_publication_schema":
            yield f"- `{{{name}}}`"
