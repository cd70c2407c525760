"""The hairpin setting of this host's functions: what it is, and whether the mesh may stand on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..contract import hairpin_state, host_plan
from ..contract.drivers import DRIVERS
from . import hairpin_journal, survey_card
from .host import Host


@dataclass(frozen=True)
class Function:
    """One function of the card: its link of the plan, what was seen of it, and what that means."""

    link: host_plan.Link
    seen: dict[str, Any]
    judgement: hairpin_state.Judgement

    @property
    def bdf(self) -> str:
        """PCI address."""
        return self.link.bdf or ""

    @property
    def setting(self) -> dict[str, Any]:
        """Values and counts that devlink shows."""
        found: dict[str, Any] = self.seen["hairpin"]
        return found


def needed(plan: host_plan.HostPlan) -> bool:
    """Whether this host relays in its card."""
    return plan.hairpin.needed and DRIVERS[plan.driver].needs_hairpin


def look_at(host: Host, plan: host_plan.HostPlan, link: host_plan.Link) -> Function:
    """Look at one function."""
    seen = survey_card.function(host, link.bdf or "", link.netdev)
    return Function(link, seen, hairpin_state.judge(seen, plan.hairpin.queue_size, plan.hairpin.num_queues))


def look(host: Host, plan: host_plan.HostPlan) -> list[Function]:
    """Look at every function of the plan, in its order; at none where the setting is not needed."""
    return [look_at(host, plan, link) for link in plan.links] if needed(plan) else []


def grouped(functions: list[Function]) -> list[str]:
    """Judgements, each once with the functions that it is about."""
    found: dict[str, list[str]] = {}
    for item in functions:
        found.setdefault(str(item.judgement), []).append(f"{item.link.netdev} ({item.link.role})")
    return [f"{words} on {', '.join(names)}" for words, names in found.items()]


def refusals(host: Host, plan: host_plan.HostPlan) -> list[str]:
    """Why no relay may be laid on this host yet; empty where its hairpin setting is in effect."""
    if not needed(plan):
        return []
    missing = [item for item in look(host, plan) if item.judgement.state != hairpin_state.IN_EFFECT]
    sentences = [
        f"{plan.host} relays, and its hairpin setting is {words}: run {hairpin_state.COMMAND}"
        for words in grouped(missing)
    ]
    ending = hairpin_journal.suspended(host)
    return sentences or ([f"{plan.host}: {ending}: run {hairpin_state.COMMAND}"] if ending else [])
