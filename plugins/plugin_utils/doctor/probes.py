"""What kept hosts from being surveyed; the others are examined all the same."""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Found, check
from .ring import Ring

UNREACHABLE, NO_PYTHON, NO_PRIVILEGE, FAILED = "unreachable", "no_python", "no_privilege", "failed"


def _of(ring: Ring, kind: str) -> Iterator[tuple[str, str]]:
    for host, obstacle in ring.obstacles.items():
        if obstacle.kind == kind:
            yield host, obstacle.reason


@check("probe.unreachable", "fail", "", "A host could not be reached by ssh.")
def unreachable(ring: Ring) -> Iterator[Found]:
    """Hosts that do not answer."""
    for host, reason in _of(ring, UNREACHABLE):
        yield Found(host, f"{host} cannot be reached: {reason}", f"see that {host} is on and that ssh to it works.")


@check("probe.no_python", "fail", "", "A host has no Python, by which it is surveyed.")
def no_python(ring: Ring) -> Iterator[Found]:
    """Hosts on which no module runs."""
    for host, reason in _of(ring, NO_PYTHON):
        yield Found(
            host,
            f"{host} has no Python where it was looked for ({reason.rstrip('.')}).",
            "install python3 there, or set ansible_python_interpreter to its path.",
        )


@check("probe.failed", "fail", "", "A host could not be surveyed for another reason.")
def failed(ring: Ring) -> Iterator[Found]:
    """Hosts whose survey failed."""
    for host, reason in _of(ring, FAILED):
        yield Found(host, f"{host} could not be surveyed: {reason}", "see what it says, then run doctor again.")


@check("probe.no_privilege", "warn", "", "A host gave no root, so part of it was not looked at.")
def no_privilege(ring: Ring) -> Iterator[Found]:
    """Hosts that were surveyed as an ordinary user."""
    for host, reason in _of(ring, NO_PRIVILEGE):
        unread = ring.nodes[host].survey.privilege.unread if host in ring.nodes else []
        yield Found(
            host,
            f"{host}: no root ({reason.rstrip('.')}), so {', '.join(unread)} were not looked at.",
            "run doctor with --ask-become-pass, or allow the user sudo.",
        )
