"""Keep a change: prove that neighbours answer and the management path stands, then end the wait for a revert."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

from ..contract import host_plan
from . import change, lock, management, observe, profiles
from .change import Pending, Run
from .commands import HostError
from .diff import compare
from .host import Host

PROOF_SECONDS = 30.0
POLL_SECONDS = 1.0
PACKET_HEADERS = 28
"""Bytes of IPv4 and ICMP headers before a ping's data."""


def confirm(
    host: Host, plan: host_plan.HostPlan, run: Run, check: bool, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Prove the change that this run has made, and keep it; ``check`` only proves.

    Raises HostError naming what does not hold, or that the host has gone back already.
    """
    with lock.hold(host, f"a confirmation of {run.operator}"):
        pending = change.admit(host, run)
        if pending is None:
            raise HostError(f"{plan.host} has no unconfirmed change, so it went back to what it was: run again")
        if pending.due(host):
            raise HostError(f"the time to confirm is over and {plan.host} {pending.sentence(host)}: run again")
        with change.named(host):
            problems = _problems(host, plan, pending, sleep)
            if problems:
                raise HostError("; ".join(problems))
        if not check:
            change.clean(host)
            if pending.what == change.REMOVE:
                change.leave(host)


def _problems(host: Host, plan: host_plan.HostPlan, pending: Pending, sleep: Callable[[float], None]) -> list[str]:
    found = management.lost(host, pending)
    if pending.what == change.REMOVE:
        state = observe.look(host, plan)
        profiles.refuse_silence(state.network_manager, plan.links)
        left = compare([], state.items)
        return found + [f"{item.id} is still here" for item in left]
    return found + unanswered(host, plan, sleep)


def unanswered(host: Host, plan: host_plan.HostPlan, sleep: Callable[[float], None]) -> list[str]:
    """Sentences about neighbours that do not answer a full packet, after several tries."""

    def answers(link: host_plan.Link) -> bool:
        size = str(link.mtu - PACKET_HEADERS)
        command = ["ping", "-n", "-q", "-c", "1", "-W", "1", "-M", "do", "-s", size, "-I", link.netdev]
        return host.runner.execute([*command, link.peer_address], None, 10).status == 0

    left, waited = list(plan.links), 0.0
    while left:
        with ThreadPoolExecutor(max_workers=len(left)) as pool:
            left = [link for link, good in zip(left, list(pool.map(answers, left))) if not good]
        if not left or waited >= PROOF_SECONDS:
            break
        sleep(POLL_SECONDS)
        waited += POLL_SECONDS + 1.0
    return [
        f"{link.peer_host} does not answer {link.mtu} bytes at {link.peer_address} through {link.netdev}"
        for link in left
    ]
