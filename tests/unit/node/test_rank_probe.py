"""Whether the model answers is asked of a real server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import rank_unit
from ansible_collections.sparkring.cluster.plugins.module_utils.node import rank_probe
from tests.unit.node import ring
from tests.unit.node.test_rank import unit


class Api(BaseHTTPRequestHandler):
    """Answers as it was told to, and keeps what it was asked."""

    status = 200
    body: Any = None
    asked: Any = None

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked = (self.path, self.headers.get("Authorization"), content["model"], content["max_tokens"])
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(json.dumps(self.body).encode())

    def log_message(self, *_words: Any) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize(
    ("status", "body", "lacks"),
    [
        (200, {"choices": [{"text": "2"}]}, None),
        (200, {"choices": []}, "an answer without a completion"),
        (200, [], "an answer without a completion"),
        (503, {}, "HTTP 503"),
        (401, {}, "HTTP 401"),
    ],
)
def test_only_a_completion_is_an_answer(tmp_path: Path, api: str, status: int, body: Any, lacks: str | None) -> None:
    Api.status, Api.body = status, body
    kernel = ring.fake(tmp_path)
    kernel.file(rank_unit.KEY_PATH, "VLLM_API_KEY=secret")
    assert rank_probe.answers(kernel.host(), unit(api=api, engine="venv")) == lacks
    assert Api.asked == ("/v1/completions", "Bearer secret", "small", 1)


def test_a_container_has_no_key_and_no_proxy_is_asked(
    tmp_path: Path, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    Api.status, Api.body = 200, {"choices": [{}]}
    assert rank_probe.answers(ring.fake(tmp_path).host(), unit(api=api)) is None
    assert Api.asked[1] is None


def test_nobody_there_is_said(tmp_path: Path) -> None:
    said = rank_probe.answers(ring.fake(tmp_path).host(), unit(api="http://127.0.0.1:9"))
    assert said is not None and "refused" in said
