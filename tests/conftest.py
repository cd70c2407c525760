"""Make the checkout importable as the collection ``sparkring.cluster``, and share one virtual ring among tests."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.virtual_ring import Ring

REPOSITORY = Path(__file__).resolve().parents[1]
COLLECTIONS = REPOSITORY / ".cache" / "collections"


def _link() -> None:
    link = COLLECTIONS / "ansible_collections" / "sparkring" / "cluster"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(REPOSITORY, target_is_directory=True)
        importlib.invalidate_caches()


_link()
sys.path.insert(0, str(COLLECTIONS))


@pytest.fixture(scope="session")
def ring() -> Iterator[Ring]:
    """A ring of LAYOUT, freshly booted and without a plan; a lab that runs already is put back to that."""
    from tests.virtual_ring import LAB, LAYOUT, Ring  # the other tests need no runner

    ring = Ring([])
    up = ring.run(
        True,
        playbook=str(REPOSITORY / "playbooks" / "lab_up.yml"),
        inventory="localhost,",
        extravars={"sparkring_lab_layout": LAYOUT, "sparkring_lab_dir": str(LAB)},
    )
    start = up.results("Start the virtual ring and wait until every host answers")["localhost"]["start"]
    if start == "running":
        ring.lab(state="restored", name="booted")
    shutil.rmtree(LAB / "plans", ignore_errors=True)
    ring.hosts = sorted(ring.each("ansible.builtin.ping"))
    yield ring
    if start != "running":
        ring.run(True, playbook=str(REPOSITORY / "playbooks" / "lab_down.yml"), inventory="localhost,")
