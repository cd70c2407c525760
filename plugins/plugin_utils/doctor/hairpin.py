"""Checks of the card's setting by which it forwards between its ports, on hosts that relay."""

from __future__ import annotations

from collections.abc import Iterator

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import hairpin_state
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner

from .addresses import listed
from .mesh import OUR_PREFERENCES, REFERENCE_PREFERENCES, filters
from .registry import Found, check
from .ring import Node, Ring


def relays(ring: Ring) -> Iterator[tuple[Node, bool]]:
    """Hosts whose card has to forward, and whether relays are planned or laid there already."""
    planned = {node.name: plan.hairpin.needed for node, plan in ring.planned()}
    transit = {node.name for node in ring.transit}
    for node in ring.nodes.values():
        laid = bool(filters(node, OUR_PREFERENCES) or filters(node, REFERENCE_PREFERENCES))
        if node.driver_needs_hairpin and (planned.get(node.name, node.name in transit) or laid):
            yield node, laid or planned.get(node.name, False)


def states(node: Node) -> dict[str, dict[str, str]]:
    """Functions whose setting is not in effect: netdev and reason by state."""
    found: dict[str, dict[str, str]] = {}
    for function in node.survey.devlink.values():
        if function.get("netdev") in node.netdevs:
            judged = hairpin_state.judge(function, planner.HAIRPIN_QUEUE_SIZE, planner.HAIRPIN_NUM_QUEUES)
            if judged.state != hairpin_state.IN_EFFECT:
                found.setdefault(judged.state, {})[str(function["netdev"])] = judged.reason
    return found


def _of(ring: Ring, state: str, fix: str) -> Iterator[Found]:
    for node, used in relays(ring):
        functions = states(node).get(state, {})
        if functions and (used or state == hairpin_state.FAILED):
            reason = next(iter(functions.values()))
            yield Found(node.name, f"{node.name}: hairpin is {state} on {listed(sorted(functions))}: {reason}.", fix)


@check(
    "hairpin.default", "fail", "devlink", "A relaying card has the driver's small hairpin queues and drops under load."
)
def default(ring: Ring) -> Iterator[Found]:
    """Functions that nobody set."""
    yield from _of(ring, hairpin_state.DEFAULT, f"{hairpin_state.COMMAND}, which restarts one function at a time.")


@check("hairpin.pending", "fail", "devlink", "The hairpin setting is written but only a driver restart makes it true.")
def pending(ring: Ring) -> Iterator[Found]:
    """Functions that show the values and do not use them."""
    yield from _of(ring, hairpin_state.PENDING, f"{hairpin_state.COMMAND}, which restarts one function at a time.")


@check("hairpin.failed", "fail", "devlink", "The driver's last restart for the hairpin setting failed.")
def failed(ring: Ring) -> Iterator[Found]:
    """Functions whose restart failed."""
    yield from _of(ring, hairpin_state.FAILED, f"power the host off and on, then {hairpin_state.COMMAND}.")


@check("hairpin.offload_off", "fail", "devlink", "Traffic-control offload is off on a relaying card.")
def offload_off(ring: Ring) -> Iterator[Found]:
    """Functions that take no filters."""
    yield from _of(ring, hairpin_state.OFFLOAD_OFF, "ethtool -K NETDEV hw-tc-offload on, then run mesh-setup.")


@check("hairpin.unknown", "fail", "devlink", "The state of a relaying card's hairpin setting cannot be told.")
def unknown(ring: Ring) -> Iterator[Found]:
    """Functions that must not be touched as they are."""
    yield from _of(
        ring, hairpin_state.UNKNOWN, "change nothing by force; compare driver and firmware with the other hosts'."
    )


@check("hairpin.needed", "info", "devlink", "A card that will relay once the mesh is laid lacks the hairpin setting.")
def needed(ring: Ring) -> Iterator[Found]:
    """Hosts where no relay is laid or planned yet."""
    for node, used in relays(ring):
        found = {state: netdevs for state, netdevs in states(node).items() if state != hairpin_state.FAILED}
        if found and not used:
            words = ", ".join(f"{state} on {listed(sorted(netdevs))}" for state, netdevs in sorted(found.items()))
            yield Found(
                node.name,
                f"{node.name} has to relay in this ring, and its hairpin setting is not in effect ({words}).",
                f"{hairpin_state.COMMAND} before the mesh is laid.",
            )
