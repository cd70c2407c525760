"""One recipe on one ring: whether it may be served there, and what each host is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import RankUnit
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import (
    fit,
    listing,
    reader,
    render,
    settings,
    status,
    systemd,
)

VARIABLE = "sparkring_recipe"


class DeploymentError(ValueError):
    """Why it cannot be served, in one sentence."""


@dataclass(frozen=True)
class Deployment:
    """What the hosts of a ring are given, by host: unit, unit_text, environment, library; what to tell the operator."""

    ranks: dict[str, dict[str, Any]]
    lines: list[str]


def make(
    plan: RingPlan, recipes_dir: Path, plans_dir: Path, recipe_id: str | None, given: Mapping[str, Any] | None
) -> Deployment:
    """The deployment of a recipe on a ring; raises DeploymentError, RecipeError or SettingsError."""
    if not recipe_id:
        raise DeploymentError(
            f"Ring {plan.ring} names no recipe: set {VARIABLE} to one of those that `sparkring recipes` lists as FITS."
        )
    recipe, asked = reader.find(recipes_dir, recipe_id), settings.read(given)
    found = fit.of(recipe, plan, asked)
    if found.reasons or found.needs:
        why = "; ".join(found.reasons or found.needs)
        others = [item.recipe for item in listing.judged(plan, reader.read_all(recipes_dir), asked) if not item.reasons]
        instead = f" Recipes for this ring: {', '.join(others) or 'none'}." if found.reasons else ""
        raise DeploymentError(f"Recipe {recipe_id} cannot be served on ring {plan.ring}: {why}.{instead}")
    units = render.units(recipe, plan, asked)
    if any(unit.fabric for unit in units):
        _refuse_unverified(plan, plans_dir)
    ranks = {
        unit.host: {
            "unit": documents.to_plain(unit),
            "unit_text": systemd.unit_text(unit),
            "environment": systemd.environment_text(unit),
            "library": _library(unit, asked),
        }
        for unit in units
    }
    lines = [f"Ring {plan.ring}: {units[0].deployment} serves recipe {recipe.id}, {status.of(recipe, asked).sentence}"]
    library = settings.library(asked)
    lines += [f"  NCCL: {library.id}, version {library.version}, brought by `sparkring transport`"] if library else []
    lines += [f"  licence: {said}" for said in fit.licence_lines(recipe)]
    lines += [f"  note: {said}" for said in found.warnings]
    return Deployment(ranks, lines)


def _library(unit: RankUnit, asked: settings.Settings) -> dict[str, Any] | None:
    """The NCCL library that must lie on the host, and the image whose process opens it."""
    library = settings.library(asked)
    if library is None:
        return None
    made = {"path": render.library_path(library), "sha256": library.sha256, "version": library.version}
    return made | {"engine_image": unit.image.run if unit.image else None}


def _refuse_unverified(plan: RingPlan, plans_dir: Path) -> None:
    """The newest receipt of a verification must be of this plan, and must have found nothing."""
    receipts = sorted((plans_dir / plan.ring / "receipts").glob("*-verify.json"))
    if not receipts:
        raise DeploymentError(f"Ring {plan.ring} was never verified: run mesh-setup, or verify where it is laid.")
    newest = json.loads(receipts[-1].read_text(encoding="utf-8"))
    if newest["plan_digest"] != plan.digest:
        raise DeploymentError(
            f"Ring {plan.ring} was verified on plan {newest['plan_digest']}, and the plan is {plan.digest}: "
            "run mesh-setup, or verify where it is laid."
        )
    if not newest["ok"]:
        raise DeploymentError(
            f"The last verification of ring {plan.ring} has findings ({newest['summary']}): mend them, then run verify."
        )
