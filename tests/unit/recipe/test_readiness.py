"""Waiting for a deployment: who says what, and that no host waits for one that has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import readiness

HEAD: dict[str, Any] = {
    "rank": 0,
    "deployment": "small",
    "unit": "sparkring-node-rank@small.service",
    "active": "active",
    "runs": True,
    "log": [],
    "api": "http://127.0.0.1:8000",
    "model": "tiny",
    "key": "/etc/sparkring-node/rank/key",
    "status": "implemented",
    "timeout_seconds": 60,
}
WORKER = HEAD | {"rank": 1, "api": None}


def test_all_wait_until_the_head_answers(tmp_path: Path) -> None:
    head, worker = readiness.Board(tmp_path / "board"), readiness.Board(tmp_path / "board")
    assert head.verdict("spark0", HEAD | {"lacks": "Connection refused"}, 5) is None
    assert worker.verdict("spark1", WORKER, 5) is None
    ended = head.verdict("spark0", HEAD | {"lacks": None}, 9)
    assert ended is not None and not ended.get("failed")
    assert ended["sparkring_lines"] == [
        "tiny is served (implemented)",
        "  url    http://127.0.0.1:8000/v1 on spark0",
        "  key    /etc/sparkring-node/rank/key on spark0, for root",
        "  ask    on spark0, as root: . /etc/sparkring-node/rank/key; "
        "curl http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' "
        '-H "Authorization: Bearer $VLLM_API_KEY" -d \'{"model": "tiny", "prompt": "Hello", "max_tokens": 16}\'',
        "  stop   sparkring stop, with the same inventory",
    ]
    assert worker.verdict("spark1", WORKER, 9) == {"changed": False}


def test_one_that_ended_is_said_once_and_ends_all(tmp_path: Path) -> None:
    board = readiness.Board(tmp_path / "board")
    ended = board.verdict("spark1", WORKER | {"active": "failed", "log": ["no such model"]}, 5)
    assert ended == {
        "failed": True,
        "msg": "rank 1 on spark1 ended before the model answered (its unit is failed); "
        "see journalctl -u sparkring-node-rank@small.service there, then run serve again.",
        "sparkring_lines": ["  spark1 | no such model"],
    }
    assert board.verdict("spark0", HEAD | {"lacks": "Connection refused"}, 5) == {"changed": False}


def test_the_wait_has_an_end(tmp_path: Path) -> None:
    board = readiness.Board(tmp_path / "board")
    ended = board.verdict("spark0", HEAD | {"lacks": "HTTP 503"}, 60)
    assert ended == {
        "failed": True,
        "msg": "rank 0 on spark0 was not ready within 60 s (last: HTTP 503); "
        "see journalctl -u sparkring-node-rank@small.service there, or give the recipe a longer "
        "startup.timeout_seconds.",
    }


def test_a_container_without_key_says_who_reaches_it(tmp_path: Path) -> None:
    lines = readiness.closing("spark0", HEAD | {"key": None})
    assert "  key    none; only spark0 itself reaches the port" in lines
    assert not any("Bearer" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "said", "good"),
    [
        ({"lacks": None}, "active, and answers", True),
        ({}, "active", True),
        ({"active": "inactive", "runs": False}, "inactive", True),
        ({"active": "failed", "runs": False}, "failed", False),
        ({"runs": False}, "active, and started from other files than those that lie there now: run serve", False),
        (
            {"lacks": "HTTP 503"},
            "active, and does not answer (HTTP 503): see journalctl -u sparkring-node-rank@small.service",
            False,
        ),
    ],
)
def test_status_says_how_a_rank_is(changes: dict[str, Any], said: str, good: bool) -> None:
    assert readiness.line("spark0", HEAD | changes) == (f"spark0: rank 0 of small is {said}", good)
