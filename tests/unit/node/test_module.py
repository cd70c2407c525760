"""The module: what it is given reaches the library, and what a refusal tells the action."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.node import change, main
from ansible_collections.sparkring.cluster.plugins.modules import fabric
from tests.cut_kernel import CutKernel

from . import changes, ring


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CutKernel:
    changes.quick(monkeypatch)
    made = changes.bare(tmp_path)
    monkeypatch.setattr(fabric, "Host", made.host)
    monkeypatch.setattr(main, "Host", made.host)
    return made


def given(**fields: Any) -> dict[str, Any]:
    base = {"plan": ring.plan(), "program": base64.b64encode(ring.PROGRAM).decode(), "marker_source": None}
    base |= {"state": "present", "take_over": [], "revert_after": 180, "continues": None}
    return {**base, "operator": "root@desk", "run": "100/1", **fields}


def test_a_change_waits_as_long_as_it_is_told_and_is_kept(kernel: CutKernel) -> None:
    assert fabric.work(given(revert_after=77), True)["pending"] is False
    laid = fabric.work(given(revert_after=77), False)
    assert (laid["changed"], laid["pending"]) == (True, True)
    pending = change.read(kernel.host())
    assert pending is not None and (pending.seconds, pending.left(kernel.host())) == (77, 77)
    assert kernel.host().read_bytes(marks.CHANGE_PROGRAM_PATH) == ring.PROGRAM
    assert fabric.work(given(state="confirmed", program=None), True) == {"changed": False}
    assert fabric.work(given(state="confirmed", program=None), False) == {"changed": True}
    gone = fabric.work(given(state="absent"), False)
    assert (gone["changed"], gone["pending"]) == (True, True)


def test_a_gone_run_is_gone_on_with(kernel: CutKernel) -> None:
    fabric.work(given(), False)
    with pytest.raises(change.PendingRefused):
        fabric.work(given(run="200/2"), False)
    assert fabric.work(given(run="200/2", continues="100/1"), False)["pending"]
    assert fabric.work(given(run="200/2", state="confirmed"), False)["changed"]


def test_too_short_a_time_is_refused(kernel: CutKernel) -> None:
    with pytest.raises(ValueError, match=r"^revert_after is 29: give at least 30 seconds$"):
        fabric.work(given(revert_after=29), False)
    assert kernel.log == []


def test_a_refusal_says_whose_change_is_pending(kernel: CutKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        """Stands in for Ansible's."""

        params = given(run="200/2")
        check_mode = True

        def __init__(self, *_given: object, **_more: object) -> None:
            pass

        def fail_json(self, **answer: object) -> None:
            said.update(answer)
            raise SystemExit(1)

    said: dict[str, object] = {}
    fabric.work(given(), False)
    monkeypatch.setattr(fabric, "AnsibleModule", Module)
    with pytest.raises(SystemExit):
        fabric.main()
    assert said["pending"] == {"operator": "root@desk", "run": "100/1"}
    assert str(said["msg"]).startswith("root@desk has changed this host since ")


def test_the_unit_s_program_reverts_and_says_so(kernel: CutKernel, capsys: pytest.CaptureFixture[str]) -> None:
    fabric.work(given(), False)
    assert main.main(["restore"]) == 0 and capsys.readouterr().out == ""
    changes.SECONDS[0] += 181
    assert main.main(["restore"]) == 0
    assert capsys.readouterr().out == (
        "nothing laid: sparkring-node-revert.service puts back what was before an unconfirmed change\n"
    )
    assert main.main(["revert"]) == 0
    assert capsys.readouterr().out.endswith(" was not confirmed: putting back what was\n")
    assert change.read(kernel.host()) is None and kernel.rules == []
