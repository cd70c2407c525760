"""Waiting for all ranks of a deployment: it is ready when the head has answered, lost when one rank has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHOWN = 8
"""Lines of a rank's log that a failure shows."""


class Board:
    """What the ranks tell each other, one file each in a folder of the controller."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._ready, self._lost = folder / "ready", folder / "lost"

    def verdict(self, host: str, rank: Mapping[str, Any] | None, waited: float) -> dict[str, Any] | None:
        """The end of one host's wait as an action's result, None while it goes on.

        ``rank`` is what the module observed, ``waited`` seconds since the start. Only the host that knows says what
        happened; the others end silently.
        """
        if rank is None:
            return {"failed": True, "msg": "No rank is laid on this host: run serve."}
        where = f"rank {rank['rank']} on {host}"
        if rank["active"] not in ("active", "activating"):
            self._lost.touch()
            return {
                "failed": True,
                "msg": f"{where} ended before the model answered (its unit is {rank['active']}); "
                f"see journalctl -u {rank['unit']} there, then run serve again.",
                "sparkring_lines": [f"  {host} | {said}" for said in rank["log"][-SHOWN:]],
            }
        if self._lost.exists() or self._ready.exists():
            return {"changed": False}
        if rank["api"] is not None and "lacks" in rank and rank["lacks"] is None:
            self._ready.touch()
            return {"changed": False, "sparkring_lines": closing(host, rank)}
        if waited < rank["timeout_seconds"]:
            return None
        lacks = f" (last: {rank['lacks']})" if rank.get("lacks") else ""
        return {
            "failed": True,
            "msg": f"{where} was not ready within {rank['timeout_seconds']} s{lacks}; "
            f"see journalctl -u {rank['unit']} there, or give the recipe a longer startup.timeout_seconds.",
        }


def closing(host: str, rank: Mapping[str, Any]) -> list[str]:
    """The last lines of a serve: what is served where, how to ask it, how to stop it."""
    api, key = rank["api"], rank["key"]
    asked = f"curl {api}/v1/completions -H 'Content-Type: application/json'"
    body = f'{{"model": "{rank["model"]}", "prompt": "Hello", "max_tokens": 16}}'
    if key:
        asked = f'. {key}; {asked} -H "Authorization: Bearer $VLLM_API_KEY"'
    return [
        f"{rank['model']} is served ({rank['status']})",
        f"  url    {api}/v1 on {host}",
        f"  key    {key + ' on ' + host + ', for root' if key else 'none; only ' + host + ' itself reaches the port'}",
        f"  ask    on {host}, as root: {asked} -d '{body}'",
        "  stop   sparkring stop, with the same inventory",
    ]


def line(host: str, rank: Mapping[str, Any]) -> tuple[str, bool]:
    """How one rank stands, for the status, and whether that is as it should be."""
    said, good = rank["active"], rank["active"] in ("active", "inactive")
    if rank["active"] == "active" and not rank["runs"]:
        said, good = "active, and started from other files than those that lie there now: run serve", False
    elif rank.get("lacks"):
        said, good = f"active, and does not answer ({rank['lacks']}): see journalctl -u {rank['unit']}", False
    elif "lacks" in rank:
        said = "active, and answers"
    return f"{host}: rank {rank['rank']} of {rank['deployment']} is {said}", good
