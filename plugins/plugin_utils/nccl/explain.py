"""The NCCL environment of rings, for people: each variable with its reason, and which hosts differ in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl.environment import Variable, environment, refusal
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl.libraries import Library

PLACE = "<the library's path>"
SOURCES = "plan: this ring's plan. reference: FujitsuPolycom/sparkring, NCCL notes of 2026-10-07, not measured here."


def lines(plans: Sequence[RingPlan], library: Library | None) -> Iterator[str]:
    """All rings: a heading each, then two lines a variable; what the sources are comes last."""
    explained = False
    for plan in plans:
        if (refused := refusal(plan, library)) is not None:
            yield refused
            continue
        yield f"Ring {plan.ring}, {plan.layout}, NCCL {library.id if library else 'as the engine brings it'}"
        by_host = {host: environment(plan, host, library, PLACE) for host in plan.hosts}
        for number, variable in enumerate(next(iter(by_host.values()))):
            yield from _variable({host: made[number] for host, made in by_host.items()}, variable)
        explained = True
    if explained:
        yield SOURCES


def _variable(by_host: dict[str, Variable], first: Variable) -> Iterator[str]:
    values = {host: variable.value for host, variable in by_host.items()}
    if len(set(values.values())) == 1:
        yield f"  {first.name}={first.value}"
    else:
        yield from (f"  {first.name}={value}  on {host}" for host, value in values.items())
    yield f"      {first.reason} ({first.source})"
