"""A virtual ring for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.virtual_ring import LAB, LAYOUT, REPOSITORY, Ring


@pytest.fixture(scope="session")
def ring() -> Iterator[Ring]:
    """A ring of LAYOUT, freshly booted and without a plan; a lab that runs already is put back to that."""
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
