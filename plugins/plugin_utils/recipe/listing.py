"""Every recipe against a ring, for people: what fits first, then what is needed, then why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import fit
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.settings import Folders, Settings

ORDER: tuple[fit.Verdict, ...] = ("fits", "needs", "cannot")


def judged(plan: RingPlan, recipes: Sequence[Recipe], settings: Settings) -> list[fit.Fit]:
    """How each recipe fits, what fits first. Of the settings only what holds for any recipe counts."""
    general = Settings(accept_licences=settings.accept_licences, folders=settings.folders or Folders())
    found = [fit.of(recipe, plan, general) for recipe in recipes]
    return sorted(found, key=lambda item: (ORDER.index(item.verdict), item.recipe))


def lines(plan: RingPlan, recipes: Sequence[Recipe], settings: Settings) -> Iterator[str]:
    """A heading, then at most three lines a recipe."""
    found = judged(plan, recipes, settings)
    by_id = {recipe.id: recipe for recipe in recipes}
    count = {verdict: sum(item.verdict == verdict for item in found) for verdict in ORDER}
    yield (
        f"Ring {plan.ring}, {plan.layout}: {count['fits']} of {len(found)} recipes fit, {count['needs']} need "
        f"something first, {count['cannot']} cannot be served here"
    )
    for item in found:
        recipe = by_id[item.recipe]
        yield f"  {item.verdict.upper():<6} {item.recipe}: {recipe.title} ({recipe.status.level})"
        said = item.reasons if item.reasons else [*item.needs, *item.warnings]
        yield from (f"         {sentence}" for sentence in said)


def documents(plan: RingPlan, recipes: Sequence[Recipe], settings: Settings) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "recipe": item.recipe,
            "verdict": item.verdict,
            "reasons": item.reasons,
            "needs": item.needs,
            "warnings": item.warnings,
        }
        for item in judged(plan, recipes, settings)
    ]
