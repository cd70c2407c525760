"""Verbs of the node program, which the boot units and the responder's unit run.

Each verb imports only what it needs: a unit's start is felt at every boot.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from ..contract import marks
from .commands import HostError
from .host import Host

if TYPE_CHECKING:
    from ..contract.host_plan import HostPlan

VERBS = ("hairpin boot", "restore", "revert", "reconcile", "differences", "gids", "marker DEVICE", "respond", "observe")
USAGE = "usage: node.pyz " + " | ".join(VERBS)


def main(words: list[str]) -> int:
    """Run one verb; 0 is good, 1 a failure said in one sentence, 2 a wrong call."""
    host = Host()
    try:
        if len(words) == 2 and words[0] == "marker":
            from . import markers

            markers.serve(host, words[1])
        elif words == ["restore"]:
            _restore(host)
        elif words == ["revert"]:
            _revert(host)
        elif words == ["hairpin", "boot"]:
            _hairpin(host)
        elif words == ["reconcile"]:
            _reconcile(host)
        elif words == ["differences"]:
            from . import reconcile

            changes = reconcile.differences(host, _plan(host))
            print(json.dumps([change.plain() for change in changes], indent=2))
        elif words == ["gids"]:
            from . import rank

            rank.write_gids(host, _plan(host))
        elif words == ["respond"]:
            from . import responder

            return responder.main()
        elif words == ["observe"]:
            from . import survey

            print(json.dumps(survey.take(host), indent=2, sort_keys=True))
        else:
            print(USAGE, file=sys.stderr)
            return 2
    except HostError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _plan(host: Host) -> HostPlan:
    from ..contract.host_plan import HostPlan

    try:
        return HostPlan.from_plain(json.loads(host.read(marks.PLAN_PATH) or ""))
    except ValueError as error:
        raise HostError(f"{marks.PLAN_PATH} is missing or damaged ({error}): run mesh-setup") from error


def _restore(host: Host) -> None:
    from . import fabric

    if not fabric.restore(host, _plan(host)):
        print(f"nothing laid: {marks.REVERT_UNIT} puts back what was before an unconfirmed change")


def _revert(host: Host) -> None:
    from . import revert

    for line in revert.run(host):
        print(line)


def _reconcile(host: Host) -> None:
    from . import glance

    if glance.unchanged(host):
        return
    from . import reconcile

    outcome = reconcile.run(host, lambda: _plan(host))
    for line in outcome.lines:
        print(line)
    if outcome.problems:
        raise HostError("; ".join(outcome.problems))


def _hairpin(host: Host) -> None:
    from . import hairpin_run

    for line in hairpin_run.bring(host, _plan(host), hairpin_run.BOOT).lines:
        print(line)
