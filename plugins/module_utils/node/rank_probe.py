"""Whether the model answers: a real completion, asked of the head's own API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from ..contract import rank_unit
from ..contract.rank_unit import RankUnit
from .host import Host


def answers(host: Host, unit: RankUnit, timeout: float = 60.0) -> str | None:
    """None where one token came back within ``timeout`` seconds, else what was found instead."""
    asked = {"model": unit.model_name, "prompt": "1", "max_tokens": 1, "temperature": 0}
    request = urllib.request.Request(f"{unit.api}/v1/completions", json.dumps(asked).encode())
    request.add_header("Content-Type", "application/json")
    key = (host.read(rank_unit.KEY_PATH) or "").strip().partition("=")[2] if unit.engine == "venv" else ""
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=timeout) as reply:
            said = json.load(reply)
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
    choices = said.get("choices") if isinstance(said, dict) else None
    return None if choices else "an answer without a completion"
