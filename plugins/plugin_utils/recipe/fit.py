"""Whether a recipe can be served on a ring: it fits, it needs something first, or it cannot, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl import environment as nccl_environment
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import settings as operator
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe, Weights
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.settings import Settings

GIB = 1 << 30
USABLE_GIB = 121
"""Unified memory of a GB10 that programs get (facts: recipes 8)."""
KV_MARGIN = 0.10
"""How far above the recipe's own a KV cache may be before it is warned of; at least 1 GiB (facts: recipes 8)."""

Verdict = Literal["fits", "needs", "cannot"]


@dataclass(frozen=True)
class Fit:
    """``reasons`` say why it cannot be served, ``needs`` what must be done first, ``warnings`` what to know."""

    recipe: str
    reasons: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """What it comes to."""
        return "cannot" if self.reasons else "needs" if self.needs else "fits"


def of(recipe: Recipe, plan: RingPlan, settings: Settings) -> Fit:
    """How a recipe with these settings fits a ring; raises SettingsError where the settings themselves are wrong."""
    now = operator.applied(recipe, settings)
    return Fit(
        recipe=recipe.id,
        reasons=[*_incomplete(now), *_layout(now, plan), *_transport(now, plan, settings), *_memory(now)],
        needs=[*_rule(now, plan), *_folders(now, settings), *_licences(now, settings)],
        warnings=list(_warnings(recipe, now)),
    )


def _incomplete(recipe: Recipe) -> Iterator[str]:
    if recipe.lacking:
        yield f"it is incomplete: {', '.join(recipe.lacking)} {'are' if len(recipe.lacking) > 1 else 'is'} unknown"


def _layout(recipe: Recipe, plan: RingPlan) -> Iterator[str]:
    wanted = recipe.ring.layout
    if plan.degraded is not None:
        yield f"the ring is degraded to {plan.degraded.like}, and it is served on a whole {wanted}"
    elif wanted != plan.layout:
        yield f"it is served on a {wanted}, and this ring is a {plan.layout}"
    elif recipe.parallel.ranks != len(plan.hosts):
        yield f"it has {recipe.parallel.ranks} ranks, and this ring has {len(plan.hosts)} hosts"


def _transport(recipe: Recipe, plan: RingPlan, settings: Settings) -> Iterator[str]:
    derived = recipe.transport.provider == "nccl" or settings.nccl is not None
    if derived and recipe.transport.collectives == "nccl" and plan.layout == recipe.ring.layout:
        refused = nccl_environment.refusal(plan, operator.library(settings))
        if refused is not None:
            yield refused.rstrip(".")


def _memory(recipe: Recipe) -> Iterator[str]:
    kv, weights = recipe.kv.bytes_per_rank or 0, (recipe.model.bytes or 0) / recipe.parallel.ranks
    capped = recipe.container.memory_bytes or USABLE_GIB * GIB
    if kv + weights > capped:
        beside = f" beside {weights / GIB:.0f} GiB of weights" if weights else ""
        yield f"a KV cache of {kv / GIB:.1f} GiB{beside} is more than the {capped / GIB:.0f} GiB of a host"


def _rule(recipe: Recipe, plan: RingPlan) -> Iterator[str]:
    if recipe.ring.source_port_rule and not plan.counts.source_port_rules and recipe.ring.layout == plan.layout:
        yield (
            "set sparkring_source_port_rule: true for the ring, then run plan and mesh-setup: its image marks relayed "
            f"packets by UDP source port {marks.OLDER_SOURCE_PORT}"
        )


def _folders(recipe: Recipe, settings: Settings) -> Iterator[str]:
    given = settings.folders.model_dump(by_alias=True)
    for mount in recipe.container.mounts:
        if mount.of == "contract" and not given["contract"]:
            yield f"set {operator.VARIABLE}.folders.contract: its image reads a contract from {mount.target}"


def _licences(recipe: Recipe, settings: Settings) -> Iterator[str]:
    for weights in filter(None, (recipe.model, recipe.draft)):
        if weights.restricted and weights.licence not in settings.accept_licences:
            yield (
                f"the terms of {weights.repository}, {weights.licence}, restrict use: read them, and if you accept "
                f"them add {weights.licence} to {operator.VARIABLE}.accept_licences"
            )


def _warnings(recipe: Recipe, now: Recipe) -> Iterator[str]:
    own, asked = recipe.kv.bytes_per_rank, now.kv.bytes_per_rank
    if own and asked and asked > own + max(GIB, own * KV_MARGIN):
        yield (
            f"a KV cache of {asked / GIB:.1f} GiB is far above the recipe's {own / GIB:.1f}: the engine does not guard "
            "it, and a host without memory must be switched off"
        )
    if recipe.lifecycle != "current":
        instead = f"; {recipe.replaced_by} takes its place" if recipe.replaced_by else ""
        yield f"it is {recipe.lifecycle}{instead}"
    for weights in filter(None, (now.model, now.draft)):
        if not weights.files:
            yield f"no checksum of {weights.repository} is known, so its files are not checked"


def licence_lines(recipe: Recipe) -> list[str]:
    """The terms of the weights, for people."""
    return [f"{weights.repository}: {_terms(weights)}" for weights in filter(None, (recipe.model, recipe.draft))]


def _terms(weights: Weights) -> str:
    if weights.licence is None:
        return "terms not recorded, see its model card"
    return f"{weights.licence}{', which restricts use' if weights.restricted else ''}"
