"""What came of surveying a host: the survey, or the obstacle in one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from . import probes


def about_root(message: str) -> bool:
    """Whether a failed connection failed at becoming root, so that an ordinary user may still look."""
    return "privilege escalation" in message


def reason(answer: Mapping[str, Any]) -> str:
    """What a failed answer says, as one line with a full stop."""
    said = answer.get("module_stderr") or answer.get("msg") or answer.get("module_stdout") or _crash(answer)
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    # A failed module's standard error begins with what the login says; what went wrong comes last.
    text = lines[-1] if answer.get("module_stderr") else lines[0]
    return text.rstrip(".") + "."


def outcome(answer: Mapping[str, Any], refusal: str) -> dict[str, Any]:
    """Survey, obstacle and reason. ``refusal`` is what becoming root failed with, empty where it did not fail."""
    survey = answer.get("survey")
    if survey is not None:
        lacking = bool(refusal) and not survey["privilege"]["root"]
        return {"survey": survey, "obstacle": probes.NO_PRIVILEGE if lacking else None, "reason": refusal}
    said = reason(answer)
    if answer.get("unreachable"):
        # Ansible's own words around those of ssh say nothing more.
        return {"survey": None, "obstacle": probes.UNREACHABLE, "reason": re.sub(r"^.*(?:over|via) ssh: ", "", said)}
    no_python = re.search(
        r"interpreter .*not found|python\S*: (?:command )?not found|No such file or directory", _all(answer)
    )
    kind = probes.NO_PYTHON if no_python else probes.FAILED
    return {"survey": None, "obstacle": kind, "reason": said}


def _crash(answer: Mapping[str, Any]) -> str:
    """What ended a module that did not catch it, as Ansible captured it."""
    event = getattr(answer.get("exception"), "event", None)
    return str(getattr(event, "msg", None) or "no reason was given")


def _all(answer: Mapping[str, Any]) -> str:
    return " ".join(str(answer.get(name, "")) for name in ("msg", "module_stderr", "module_stdout"))
