"""A host whose card relays and marks: offloaded filters, the marker built on the host."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.fake_kernel import FakeKernel

from . import ring

SOURCE = "int main(void) { return 0; }\n"
BINARY = f"file{marks.MARKER_PATH}"
CW = ring.NETDEV["cw_primary"]
COLLECTIONS = Path(__file__).parents[3] / ".cache/collections"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)


def apply(kernel: FakeKernel, source: str | None = SOURCE, check: bool = False) -> list[str]:
    outcome = fabric.setup(kernel.host(), ring.host_plan("mlx5"), ring.PROGRAM, source, check)
    return [change["id"] for change in outcome.changes]


def test_setup_builds_the_marker_and_is_equal_then(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    bare = copy.deepcopy(kernel.memory())
    announced = apply(kernel, check=True)
    assert BINARY in announced and kernel.changing() == []
    assert apply(kernel) == announced
    assert all(item["options"]["skip_sw"] for item in kernel.filters) and len(kernel.filters) == 4
    kernel.log.clear()
    assert apply(kernel) == [] and kernel.changing() == []
    fabric.remove(kernel.host(), ring.host_plan("mlx5"), check=False)
    kept = kernel.memory()
    assert kept["files"] == bare["files"] and kept["filters"] == []


def test_another_source_is_built_and_the_markers_restarted(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    kernel.log.clear()
    assert apply(kernel, SOURCE + "// new\n") == [BINARY]
    restarts = [line for line in kernel.log if line.startswith("systemctl restart")]
    assert len(restarts) == 1 and restarts[0].count("marker@") == 4
    assert apply(kernel, SOURCE + "// new\n") == []


def test_a_binary_that_was_not_built_here_is_refused(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    (tmp_path / marks.MARKER_PATH.lstrip("/")).write_bytes(b"something else")
    with pytest.raises(HostError, match=r"is not the binary that was built here: delete it to have it built again$"):
        apply(kernel)


def test_a_filter_out_of_hardware_is_laid_again(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    kernel.filters[0]["options"]["in_hw"] = False
    assert apply(kernel, check=True) == [f"filter/{kernel.filters[0]['dev']}/0x88b5"]
    assert len(apply(kernel)) == 1 and apply(kernel) == []


def test_a_card_that_takes_no_filter_is_an_error_not_a_software_relay(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path, in_hw=False)
    with pytest.raises(HostError, match=r"^tc filter add .* skip_sw .*Operation not supported"):
        apply(kernel)
    assert kernel.filters == []


def test_a_marker_with_other_arguments_is_restarted(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    (path,) = [path for path in (tmp_path / "proc").glob("*/cmdline") if b"rocep1s0f0\0" in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b"0x88b5", b"0x88b6"))
    assert apply(kernel) == ["marker/rocep1s0f0/198.18.2.2"]
    assert apply(kernel) == []


STAND_IN = """#!{python}
import json, signal, sys
rules = sys.argv.count("--rule") + {off}
assert sys.argv[1] == "--device" and sys.argv[-1] == "--managed"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print(json.dumps({{"device": sys.argv[2], "installed": rules}}), flush=True)
if {stays}:
    signal.pause()
sys.exit(3)
"""

SERVE = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from ansible_collections.sparkring.cluster.plugins.module_utils.node import markers
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
try:
    markers.serve(Host(root=Path(sys.argv[2])), sys.argv[3])
except HostError as error:
    sys.exit(str(error))
"""


def serve(root: Path, off: int = 0, stays: bool = True) -> tuple[subprocess.Popen[str], bytes]:
    """Start the marker unit's program over a stand-in for the compiled marker; what it told systemd."""
    kernel = ring.fake(root)
    apply(kernel, STAND_IN.format(python=sys.executable, off=off, stays=stays))
    binary = root / marks.MARKER_PATH.lstrip("/")
    text = binary.read_bytes().partition(b"built from ")[2]
    record = root / f"{marks.LIB_DIR.lstrip('/')}/marker.json"
    binary.write_bytes(text)
    record.write_text(json.dumps({"binary": hashlib.sha256(text).hexdigest()}))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(root / "notify"))
        listener.settimeout(20)
        environment = {**os.environ, "NOTIFY_SOCKET": str(root / "notify")}
        child = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(COLLECTIONS), str(root), "rocep1s0f0"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = listener.recv(1000) if off == 0 else b""
    return child, said


def test_the_unit_is_ready_when_all_rules_are_installed_and_stops_cleanly(tmp_path: Path) -> None:
    child, said = serve(tmp_path)
    assert said == b"READY=1\nSTATUS=1 rules laid on rocep1s0f0"
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"off": -1}, "the marker of rocep1s0f0 installed 0 of 1 rules\n"),
        ({"stays": False}, "the marker of rocep1s0f0 ended by itself (exit 3)\n"),
    ],
)
def test_the_unit_fails_with_its_marker(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    child, _ = serve(tmp_path, **options)
    _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors) == (1, sentence)


def test_source_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"^the source of the marker was not given$"):
        fabric.setup(ring.fake(tmp_path).host(), HostPlan.from_plain(ring.plan("mlx5")), b"", None, False)
