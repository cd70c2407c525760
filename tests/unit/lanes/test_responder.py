"""A responder obeys authentic requests on its own plan, and nothing else."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import gid, messages
from ansible_collections.sparkring.cluster.plugins.module_utils.node import responder as responder_module
from ansible_collections.sparkring.cluster.plugins.module_utils.node.messages import Asking, Channel, Refused, code
from ansible_collections.sparkring.cluster.plugins.module_utils.node.responder import (
    Responder,
    ResponderError,
    Verbs,
    filter_packets,
    forwarded_datagrams,
    listens,
)

from . import ring
from .conftest import Bench

SERVE = {"host": "spark1", "verb": "serve", "lane": "lane/spark1>spark0/0", "port": 18620}


@pytest.fixture
def line(bench: Bench, responders: dict[str, Responder]) -> Any:
    """A bare connection to spark1's responder."""
    connection = socket.create_connection((ring.MANAGEMENT["spark1"], bench.port), 5)
    yield connection
    connection.close()


def request_text(key: bytes, nonce: str, request: dict[str, Any]) -> bytes:
    body = json.dumps({**request, "id": "1"})
    return json.dumps({"body": body, "code": code(key, "request", nonce, body)}).encode() + b"\n"


def nonce_of(connection: socket.socket) -> str:
    return str(json.loads(connection.makefile("rb").readline())["nonce"])


def assert_refused(bench: Bench, connection: socket.socket) -> None:
    """The connection ends without another word, and nothing was started."""
    connection.settimeout(5)
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""
    assert bench.calls() == []


def test_an_authentic_request_is_obeyed(bench: Bench, line: socket.socket) -> None:
    asking = Asking(Channel(line), ring.KEY)
    assert asking.ask(SERVE, 10) == {"result": {}}
    assert [call[1] for call in bench.calls()] == ["rocespark1ccw"]
    assert asking.ask({"host": "spark1", "verb": "stop", "port": 18620}, 5) == {"result": {}}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((ring.MANAGEMENT["spark1"], 18620), 1)


def test_a_wrong_key_is_refused(bench: Bench, line: socket.socket) -> None:
    line.sendall(request_text(b"x" * 32, nonce_of(line), SERVE))
    assert_refused(bench, line)


def test_the_asker_sees_a_wrong_key_as_a_closed_connection(bench: Bench, line: socket.socket) -> None:
    with pytest.raises((Refused, ConnectionResetError), match=r"closed|reset"):
        Asking(Channel(line), b"x" * 32).ask(SERVE, 5)


def test_a_message_is_refused_the_second_time(bench: Bench, line: socket.socket) -> None:
    text = request_text(ring.KEY, nonce_of(line), {"host": "spark1", "verb": "stop", "port": 18620})
    line.sendall(text)
    assert "code" in json.loads(line.makefile("rb").readline())
    line.sendall(text)
    reader = line.makefile("rb")
    assert "nonce" in json.loads(reader.readline())
    assert reader.readline() == b""
    assert bench.calls() == []


def test_a_message_is_refused_on_another_connection(bench: Bench, line: socket.socket) -> None:
    with socket.create_connection((ring.MANAGEMENT["spark1"], bench.port), 5) as other:
        text = request_text(ring.KEY, nonce_of(other), SERVE)
    nonce_of(line)
    line.sendall(text)
    assert_refused(bench, line)


def test_a_message_for_another_host_is_refused(bench: Bench, line: socket.socket) -> None:
    answer = Asking(Channel(line), ring.KEY).ask({**SERVE, "host": "spark2"}, 5)
    assert answer == {"error": "spark1: the request is for 'spark2', not for spark1"}
    assert bench.calls() == []


def test_a_truncated_message_is_refused(bench: Bench, line: socket.socket) -> None:
    line.sendall(request_text(ring.KEY, nonce_of(line), SERVE)[:-20])
    line.shutdown(socket.SHUT_WR)
    assert_refused(bench, line)


def test_an_oversized_message_is_refused(bench: Bench, line: socket.socket) -> None:
    nonce_of(line)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        line.sendall(b"x" * (messages.MAX_LINE + 4097))
    assert_refused(bench, line)


@pytest.mark.parametrize("text", [b"\n", b"[]\n", b"{}\n", b"null\n", b'{"body": 1, "code": "a"}\n', b"\xff\xfe\n"])
def test_nonsense_is_refused(bench: Bench, line: socket.socket, text: bytes) -> None:
    nonce_of(line)
    line.sendall(text)
    assert_refused(bench, line)


def test_a_silent_caller_is_let_go(
    bench: Bench, responders: dict[str, Responder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder_module, "GREETING_SECONDS", 0.2)
    with socket.create_connection((ring.MANAGEMENT["spark1"], bench.port), 5) as connection:
        nonce_of(connection)
        assert_refused(bench, connection)


def test_a_slow_caller_is_let_go(
    bench: Bench, responders: dict[str, Responder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responder_module, "GREETING_SECONDS", 0.3)
    with socket.create_connection((ring.MANAGEMENT["spark1"], bench.port), 5) as connection:
        text = request_text(ring.KEY, nonce_of(connection), SERVE)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for byte in text:
                connection.sendall(bytes([byte]))
                time.sleep(0.01)
    assert bench.calls() == []


def test_a_forged_reply_is_refused() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b'{"nonce": "00"}\n{"body": "{}", "code": "00"}\n')
        with pytest.raises(Refused, match="a reply is not authentic"):
            Asking(Channel(near), ring.KEY).ask(SERVE, 5)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"verb": "run"}, "the verb 'run' is unknown"),
        ({"verb": ["serve"]}, "the verb ['serve'] is unknown"),
        ({"lane": "lane/spark0>spark1/0"}, "the lane 'lane/spark0>spark1/0' is not in the plan"),
        ({"lane": ["x"]}, "the lane ['x'] is not in the plan"),
        ({"port": 22}, "the port 22 is not a lane port"),
        ({"port": "18620"}, "the port '18620' is not a lane port"),
        ({"port": 18640}, "the port 18640 is not a lane port"),
        ({"device": "x"}, "serve takes lane, port"),
        ({"verb": "end"}, "end takes no arguments"),
        ({"verb": "stop"}, "stop takes port"),
    ],
)
def test_only_the_verbs_and_objects_of_the_plan(
    bench: Bench, line: socket.socket, change: dict[str, Any], error: str
) -> None:
    answer = Asking(Channel(line), ring.KEY).ask({**SERVE, **change}, 5)
    assert answer == {"error": f"spark1: {error}"}
    assert bench.calls() == []


@pytest.mark.parametrize("filters", ["filter/spark1cw/0x88b5", [1], ["filter/spark1cw/0x88b6"]])
def test_only_the_filters_of_the_plan(bench: Bench, line: socket.socket, filters: Any) -> None:
    answer = Asking(Channel(line), ring.KEY).ask({"host": "spark1", "verb": "counters", "filters": filters}, 5)
    assert set(answer) == {"error"}


def test_a_short_key_is_refused(bench: Bench) -> None:
    plan = ring.host_plan("spark0")
    with pytest.raises(ResponderError, match="at least 32 bytes"):
        Responder(plan, b"short", Verbs(plan, bench.host), bench.port)


def test_one_lane_is_stopped_and_the_next_still_waits(bench: Bench, line: socket.socket) -> None:
    asking = Asking(Channel(line), ring.KEY)
    for port in (18630, 18631):
        assert asking.ask({**SERVE, "port": port}, 10) == {"result": {}}
    assert asking.ask({"host": "spark1", "verb": "stop", "port": 18630}, 5) == {"result": {}}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((ring.MANAGEMENT["spark1"], 18630), 1)
    socket.create_connection((ring.MANAGEMENT["spark1"], 18631), 1).close()


def test_it_ends_when_told_to(bench: Bench, line: socket.socket, responders: dict[str, Responder]) -> None:
    assert Asking(Channel(line), ring.KEY).ask({"host": "spark1", "verb": "end"}, 5) == {"result": {}}
    line.settimeout(5)
    with contextlib.suppress(ConnectionResetError):
        while line.recv(100):
            pass
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            socket.create_connection((ring.MANAGEMENT["spark1"], bench.port), 1).close()
        except ConnectionRefusedError:
            return
        time.sleep(0.05)
    pytest.fail("the responder still listens")


def test_it_ends_when_idle(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responder_module, "IDLE_SECONDS", 0.1)
    plan = ring.host_plan("spark0")
    Responder(plan, ring.KEY, Verbs(plan, bench.host), bench.port).run()


def test_a_server_that_nobody_comes_to_is_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responder_module, "SERVER_SECONDS", 0.0)
    verbs = Verbs(ring.host_plan("spark1"), bench.host)
    verbs.serve("lane/spark1>spark0/0", 18622)
    verbs.stop_overdue()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((ring.MANAGEMENT["spark1"], 18622), 1)


def test_the_gid_is_found_by_content(bench: Bench) -> None:
    port = bench.host.path("/sys/class/infiniband/rocespark0cw/ports/1")
    assert gid.by_address(bench.host, "rocespark0cw", "spark0cw") == {"198.18.0.1": 3}
    for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / folder / "3").rename(port / folder / "10")
    assert gid.by_address(bench.host, "rocespark0cw", "spark0cw") == {"198.18.0.1": 10}
    assert gid.by_address(bench.host, "rocespark0cw", "other") == {}
    (port / "gids/10").rename(port / "gids/2000")
    assert gid.by_address(bench.host, "rocespark0cw", "spark0cw") == {}


def test_forwarded_datagrams_are_read_by_name() -> None:
    text = "Ip: Forwarding DefaultTTL InReceives ForwDatagrams\nIp: 1 64 900 7\nIcmp: InMsgs\nIcmp: 5\n"
    assert forwarded_datagrams(text) == 7
    assert forwarded_datagrams(Path("/proc/net/snmp").read_text()) >= 0


def test_a_filter_counts_what_passed_all_its_actions() -> None:
    def shown(*packets: int) -> list[dict[str, Any]]:
        actions = [{"stats": {"packets": count}} for count in packets]
        head = {"pref": 41, "kind": "flower"}
        return [head, {**head, "options": {"handle": 1, "actions": actions}}]

    assert filter_packets(shown(200, 200, 198), 41, 1) == 198
    assert filter_packets(shown(200), 42, 1) is None
    assert filter_packets(shown(200), 41, 2) is None
    assert filter_packets(shown(), 41, 1) is None


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")])
def test_a_listener_is_seen(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        port = listener.getsockname()[1]
        assert not listens(port)
        listener.listen()
        assert listens(port)
    assert not listens(port)
