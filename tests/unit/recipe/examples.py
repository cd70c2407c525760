"""Example rings, one for each layout that a recipe needs, and the recipes of this collection."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import RankUnit
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import reader, render, settings, systemd
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import inventory, planner
from tests.rings import make_bindings, make_inventory

RECIPES = Path(__file__).resolve().parents[3] / "recipes"
ALL = {recipe.id: recipe for recipe in reader.read_all(RECIPES)}
NOT_RENDERED = {
    "deepseek-v4-flash-vision-exp-tp4",
    "glm53-flash-spark-tp2-dcp1-sparkcache",
    "glm53-flash-spark-tp2-mtp3-5gib",
}
"""Recipes whose command line is not known as a whole."""
RENDERED = sorted(ALL.keys() - NOT_RENDERED)
GIVEN = {"folders": {"contract": "/var/lib/sparkring/contract"}}
"""What an operator must say for some recipes, since only they can know it."""


@cache
def ring(layout: str) -> RingPlan:
    if layout != "switched":
        given = make_inventory(layout, "home")
    else:
        hosts = [
            (f"spark{place}", {"sparkring_endpoints": {"cw_primary": f"10.9.0.{place + 1}/24"}}) for place in range(4)
        ]
        given = inventory.read("home", {"sparkring_layout": "switched"}, hosts)
    return planner.plan(given, make_bindings(given))


def units(recipe: Recipe, **given: object) -> list[RankUnit]:
    return render.units(recipe, ring(recipe.ring.layout), settings.read({**GIVEN, **given}))


def unquoted(line: str) -> list[str]:
    """Words of an Exec line as systemd reads them (systemd.service, COMMAND LINES): without its doubled signs."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(line.replace("\\\n", " "))]


def exec_line(unit: RankUnit, key: str) -> str:
    text = systemd.unit_text(unit)
    found = re.search(rf"^{key}=((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1]
