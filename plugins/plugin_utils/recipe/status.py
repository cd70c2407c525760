"""A status belongs to exact settings: what is claimed of a deployment, and what took the recipe's own away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import settings as operator
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import UNQUALIFIED, Recipe
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.settings import Settings

WEAKER = ("research-only", "unsupported", UNQUALIFIED)
"""Levels that claim no more than the unqualified one: a change does not lift them."""


@dataclass(frozen=True)
class Standing:
    """A level, and the settings that differ from those for which the recipe claims its own; with what it covers."""

    level: str
    changed: list[str]
    scope: str = ""

    @property
    def sentence(self) -> str:
        """For people, in one line."""
        if not self.changed:
            return f"{self.level}{': ' + self.scope if self.scope else ''}"
        return f"{self.level}: changed from the recipe are {', '.join(self.changed)}"


def of(recipe: Recipe, settings: Settings) -> Standing:
    """The standing of a recipe under these settings."""
    changed = operator.changed(recipe, settings)
    now = operator.applied(recipe, settings)
    for claim in recipe.status.claims:
        if set(changed) <= set(claim.at) and all(_value(now, name) == value for name, value in claim.at.items()):
            return Standing(claim.level, [], claim.scope)
    if not changed:
        return Standing(recipe.status.level, [], recipe.status.scope)
    level = recipe.status.level if recipe.status.level in WEAKER else UNQUALIFIED
    return Standing(level, changed)


def _value(recipe: Recipe, name: str) -> Any:
    value: Any = recipe
    for part in operator.PLACES.get(name, tuple(name.split("."))):
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
    return value
