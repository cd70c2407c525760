"""Verbs of the node program, which the boot units and the responder's unit run."""

from __future__ import annotations

import json
import sys

from ..contract import documents, marks
from ..contract.host_plan import HostPlan
from . import fabric, markers, responder, survey
from .commands import HostError
from .host import Host

USAGE = "usage: node.pyz restore | marker DEVICE | respond | observe"


def stored_plan(host: Host) -> HostPlan:
    """The plan that this host holds."""
    text = host.read(marks.PLAN_PATH)
    if text is None:
        raise HostError(f"{marks.PLAN_PATH} is missing: run mesh-setup")
    try:
        return HostPlan.from_plain(json.loads(text))
    except ValueError as error:
        raise HostError(f"{marks.PLAN_PATH} cannot be read ({error}): run mesh-setup") from error


def main(words: list[str]) -> int:
    """Run one verb; 0 is good, 1 a failure said in one sentence, 2 a wrong call."""
    host = Host()
    try:
        if words == ["restore"]:
            fabric.restore(host, stored_plan(host))
        elif len(words) == 2 and words[0] == "marker":
            markers.serve(host, stored_plan(host), words[1])
        elif words == ["respond"]:
            return responder.main()
        elif words == ["observe"]:
            sys.stdout.write(documents.to_text(survey.take(host)))
        else:
            print(USAGE, file=sys.stderr)
            return 2
    except HostError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
