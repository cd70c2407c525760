"""Authenticated messages between the lane check and its responders.

One TCP connection carries one request after another, each message one line of JSON. The
responder offers a fresh nonce for every request. A request counts only with HMAC-SHA256 over
that nonce and its body; a reply only with HMAC-SHA256 over its request's code and its own body.
So a message is worth nothing a second time, on another connection or the other way round.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import time
from typing import Any

MAX_LINE = 16384
SEND_SECONDS = 10.0
MIN_KEY_BYTES = 32


class Refused(Exception):
    """A message that is not whole, not in time or not authentic."""


def code(key: bytes, label: str, *parts: str) -> str:
    """HMAC-SHA256 over the label and the parts, each with its length before it."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in (label, *parts):
        data = part.encode()
        mac.update(len(data).to_bytes(8, "big") + data)
    return mac.hexdigest()


class Channel:
    """Lines of JSON over one socket, bounded in size and time."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._waiting = b""

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self._socket.settimeout(SEND_SECONDS)
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float) -> dict[str, str]:
        """Receive one message of string fields; raises Refused when none comes whole within ``seconds``."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Refused(f"no message within {seconds:.0f} s")
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(4096)
            except socket.timeout:
                continue
            if not data:
                raise Refused("the connection was closed")
            self._waiting += data
            if len(self._waiting) > MAX_LINE:
                raise Refused(f"a message is longer than {MAX_LINE} bytes")
        line, self._waiting = self._waiting.split(b"\n", 1)
        try:
            message = json.loads(line)
        except ValueError:
            raise Refused("a message is not JSON") from None
        if not isinstance(message, dict) or not all(isinstance(value, str) for value in message.values()):
            raise Refused("a message is not a mapping of strings")
        return message

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class Answering:
    """The responder's end of one connection."""

    def __init__(self, channel: Channel, key: bytes) -> None:
        self._channel = channel
        self._key = key
        self._request_code = ""

    def next_request(self, seconds: float) -> dict[str, Any]:
        """Offer a nonce, wait for the request on it; raises Refused unless it is authentic."""
        nonce = secrets.token_hex(32)
        self._channel.send({"nonce": nonce})
        message = self._channel.receive(seconds)
        body = message.get("body", "")
        if not hmac.compare_digest(message.get("code", ""), code(self._key, "request", nonce, body)):
            raise Refused("a request is not authentic")
        self._request_code = message["code"]
        request = json.loads(body)
        if not isinstance(request, dict):
            raise Refused("a request is not a mapping")
        return request

    def reply(self, reply: dict[str, Any]) -> None:
        """Answer the request last received."""
        body = json.dumps(reply)
        self._channel.send({"body": body, "code": code(self._key, "reply", self._request_code, body)})


class Asking:
    """The lane check's end of one connection."""

    def __init__(self, channel: Channel, key: bytes) -> None:
        self._channel = channel
        self._key = key

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its reply; raises Refused unless the reply is authentic."""
        nonce = self._channel.receive(SEND_SECONDS).get("nonce", "")
        body = json.dumps({**request, "id": secrets.token_hex(16)})
        request_code = code(self._key, "request", nonce, body)
        self._channel.send({"body": body, "code": request_code})
        message = self._channel.receive(seconds)
        text = message.get("body", "")
        if not hmac.compare_digest(message.get("code", ""), code(self._key, "reply", request_code, text)):
            raise Refused("a reply is not authentic")
        reply: dict[str, Any] = json.loads(text)
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()
