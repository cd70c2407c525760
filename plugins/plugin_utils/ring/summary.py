"""The plan in words: ``README.md`` beside it."""

from __future__ import annotations

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan


def markdown(plan: RingPlan) -> str:
    """One page that an operator reads before applying."""
    return f"# Ring {plan.ring}\n"
