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
be served. Those below come from the reference project's profiles. None was run by this project on its hardware: their
evidence and status are the reference's own.

A status belongs to exact settings. Whoever changes one serves an `implemented-unqualified-configuration`, and its units
say what was changed.
"""
IMPORT = """## Bring your recipe

Recipes of [spark-vllm-docker](https://github.com/eugr/spark-vllm-docker) (`recipe_version: "1"`) and of
[sparkrun](https://github.com/spark-arena/sparkrun) (`recipe_version: "2"`) become recipes of SparkRing:

    sparkring import minimax-m2.7.yaml --check --diff                          # shows what would be written
    sparkring import minimax-m2.7.yaml -e sparkring_import_to=recipes/minimax-m2.7.yml

Without `sparkring_import_to` the recipe goes into the folder of the recipes, named after the file. A file that is
another recipe is never written over. `-e sparkring_import_layout=path-4` names the ring's layout; without it two ranks
take a `pair`, more take the cycle of as many hosts.

Nothing of the file is run. Every part of it has a line:

| Line | Is said of |
|---|---|
| `mapped` | what the recipe carries, and the field that carries it |
| `chosen` | what the file does not say and you may choose otherwise, such as the layout |
| `dropped` | what the recipe does without, and why |
| `refused` | what it cannot do without and cannot carry. Nothing is written |

The command must be one plain `vllm serve`, its names in braces all given by `defaults`. Its sizes, limits, ports and
names go into the recipe's fields, flags that the renderer writes are dropped, all others are carried as they are.
Ray, `NCCL_*` and interface names are dropped, since the plan says them. Keys and tokens are dropped, and never printed.
Another engine, one host alone, a shell's work in the command, and powers over the host are refused.

What the file does not know stays absent: image digest, commit of the checkpoint, hashes, limits. Patches (`mods`,
`pre_exec`) are never run: they are listed as `image.patches` under `unknown`, and the recipe is incomplete until an
image has them and you remove that line. The last line of the report says what else is missing.
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
    yield f"\n{IMPORT}"
    yield "## Names in braces\n"
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
