"""What the events come to, without a playbook."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.cli import progress as progress_module
from ansible_collections.sparkring.cluster.plugins.plugin_utils.cli.progress import Progress, sentence, unreachable
from ansible_collections.sparkring.cluster.plugins.plugin_utils.cli.reporters import Reporter


def event(kind: str, host: str, play: str = "Work", **data: Any) -> dict[str, Any]:
    return {"event": "runner_" + kind, "event_data": {"host": host, "play": play, "task": "Do", **data}}


def test_it_says_every_thirty_seconds_that_it_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: clock[0])
    progress = Progress(Reporter(live=False))
    progress.handle(event("on_start", "spark0", role="sparkring.cluster.fabric"))
    for seconds in (129.0, 131.0, 140.0, 162.0):
        clock[0] = seconds
        assert progress.tick() is False
    told = capsys.readouterr().out.splitlines()
    assert told == ["still working: fabric: Do (31 s)", "still working: fabric: Do (62 s)"]


@pytest.mark.parametrize(
    ("findings", "expected"), [([3], 1), ([None], 2), ([3, None], 2)], ids=["findings", "fault", "both"]
)
def test_a_fault_beside_findings_could_not_run(findings: list[int | None], expected: int) -> None:
    progress = Progress(Reporter(live=False))
    for number, found in enumerate(findings):
        progress.handle(event("on_failed", f"spark{number}", res={"msg": "no", "sparkring_findings": found}))
    assert progress.exit_code(2) == expected


def test_an_ignored_failure_is_none() -> None:
    progress = Progress(Reporter(live=False))
    progress.handle(event("on_failed", "spark0", res={"msg": "no"}, ignore_errors=True))
    assert (progress.failures, progress.exit_code(0)) == (0, 0)


def test_an_unreachable_host_could_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Reporter(live=False))
    progress.handle(event("on_unreachable", "spark2", res={"msg": "Host key verification failed."}))
    assert progress.exit_code(4) == 2
    assert capsys.readouterr().out.endswith(
        "spark2: it does not answer (Host key verification failed); "
        "see that it is on and that ssh reaches it, then run this again.\n"
    )


def test_what_ansible_puts_around_an_unreachable_host_is_left_out() -> None:
    said = "Failed to connect to the host via ssh: ssh: connect to host 192.0.2.9 port 22: No route to host"
    assert unreachable({"msg": "Task failed: " + said}) == (
        "it does not answer (ssh: connect to host 192.0.2.9 port 22: No route to host); "
        "see that it is on and that ssh reaches it, then run this again."
    )


def test_failed_items_tell_their_own_sentences() -> None:
    items = [{"msg": "a is missing", "failed": True}, {"msg": "fine"}, {"msg": "a is missing", "failed": True}]
    assert sentence({"msg": "One or more items failed", "results": items}) == "a is missing"


@pytest.mark.parametrize("found", [{}, [{}]], ids=["one", "several"])
def test_differences_are_shown_where_they_are_asked_for(found: Any, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"before": "a\n", "after": "b\n", "before_header": "x", "after_header": "x"}
    given = [entry, {"prepared": "no texts"}] if isinstance(found, list) else entry
    for asked in (False, True):
        progress = Progress(Reporter(live=False), diffs=asked)
        progress.handle(event("on_ok", "spark0", res={"diff": given}))
        told = capsys.readouterr().out.splitlines()
        assert told == (["--- x", "+++ x", "@@ -1 +1 @@", "-a", "+b"] if asked else [])
