"""The ring as a picture."""

from __future__ import annotations

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan


def svg(plan: RingPlan) -> str:
    """An SVG of the ring."""
    return f'<svg xmlns="http://www.w3.org/2000/svg"><title>{plan.ring}</title></svg>\n'
