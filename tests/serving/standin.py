#!/usr/bin/python3
"""Stands in for `vllm serve`: refuses a wrong command line or environment, meets its peers, answers the API.

The head listens at the rendezvous until every other rank has told its own command line, and ends where one differs in
anything but the rank's own flags. Only then does it answer.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

OWN = {"--node-rank": 1, "--headless": 0, "--host": 1, "--port": 1}


def value(words: list[str], flag: str) -> str:
    """The word after a flag."""
    return words[words.index(flag) + 1]


def shared(words: list[str]) -> list[str]:
    """The command line without what only this rank is told."""
    left, skip = [], 0
    for word in words:
        if skip:
            skip -= 1
        elif word in OWN:
            skip = OWN[word]
        else:
            left.append(word)
    return left


def check(words: list[str]) -> tuple[int, int]:
    """Refuse what an engine could not run with; the rank and how many there are."""
    assert words[0] == "serve", words
    rank, ranks = int(value(words, "--node-rank")), int(value(words, "--nnodes"))
    assert ("--headless" in words) is (rank > 0), "--headless belongs to every rank but the head"
    assert ("--host" in words) is (rank == 0) and "--api-key" not in words, words
    assert os.environ["STANDIN_RANK"] == str(rank), os.environ["STANDIN_RANK"]
    if os.environ.get("STANDIN_ENGINE") == "container":
        check_container()
    else:
        assert bool(os.environ.get("VLLM_API_KEY")) is (rank == 0), "the key is the head's alone"
        assert Path(os.environ["HOME"]).is_relative_to("/var/cache/sparkring"), os.environ["HOME"]
        (Path(os.environ["HOME"]) / "compiled").write_text("")
        assert not os.access("/etc", os.W_OK), "the host's files can be written"
    check_devices()
    return rank, ranks


def check_container() -> None:
    """No capability, no way to one, no key that the engine would show, the model read-only and the cache not."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}
    assert int(status["CapBnd"], 16) == 0 and status["NoNewPrivs"] == "1", status
    assert "VLLM_API_KEY" not in os.environ, "the key stands in the container's environment"
    assert os.statvfs("/models/none").f_flag & os.ST_RDONLY, "the model can be written"
    Path("/cache/compiled").write_text("")


def check_devices() -> None:
    """Every RDMA device that NCCL is told of is there, its RoCE v2 entry where it was found; the library is loaded."""
    index = os.environ.get("STANDIN_GID", "*")
    library = os.environ.get("VLLM_NCCL_SO_PATH")
    assert library is None or library in Path("/proc/self/maps").read_text(), f"{library} is not loaded"
    for device in filter(None, os.environ.get("NCCL_IB_HCA", "").lstrip("=").split(",")):
        types = Path(f"/sys/class/infiniband/{device.partition(':')[0]}/ports/1/gid_attrs/types")
        assert "RoCE v2" in {readable(place) for place in types.glob(index)}, (device, index)
        assert Path("/dev/infiniband/uverbs0").exists(), "no RDMA device can be opened"


def readable(place: Path) -> str:
    """What a file says; an entry of the GID table that is not used cannot be read."""
    try:
        return place.read_text().strip()
    except OSError:
        return ""


def meet(words: list[str], rank: int, ranks: int) -> None:
    """The head waits for all others; the others come to it."""
    place = (value(words, "--master-addr"), int(value(words, "--master-port")))
    if rank == 0:
        with socket.create_server(place) as server:
            for _ in range(ranks - 1):
                peer, _ = server.accept()
                with peer, peer.makefile() as stream:
                    told = json.loads(stream.readline())
                assert told == shared(words), f"{told} is not {shared(words)}"
        return
    mine = (os.environ["VLLM_HOST_IP"], 0)
    for _ in range(60):
        try:
            with socket.create_connection(place, timeout=5, source_address=mine) as head:
                head.sendall(json.dumps(shared(words)).encode() + b"\n")
                return
        except OSError:
            time.sleep(0.5)
    sys.exit("the head is not there")


class Api(BaseHTTPRequestHandler):
    """Completions, for who knows the key."""

    def do_POST(self) -> None:
        """Answer one request."""
        key = os.environ.get("VLLM_API_KEY")
        known = key is None or self.headers.get("Authorization") == f"Bearer {key}"
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body: dict[str, Any] = {"choices": [{"text": "standing in"}]} if known else {"error": "no key"}
        self.send_response(200 if known else 401)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


def main(words: list[str]) -> None:
    """Run until it is stopped."""
    rank, ranks = check(words)
    meet(words, rank, ranks)
    print(f"rank {rank} of {ranks} is up", flush=True)
    if rank:
        while True:
            time.sleep(3600)
    HTTPServer((value(words, "--host"), int(value(words, "--port"))), Api).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
