"""What surveying a host can come to."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import contact

AS_USER = {"privilege": {"root": False}}
AS_ROOT = {"privilege": {"root": True}}


@pytest.mark.parametrize(
    ("answer", "refusal", "obstacle", "reason"),
    [
        ({"survey": AS_ROOT}, "", None, ""),
        ({"survey": AS_ROOT}, "sudo is not installed.", None, "sudo is not installed."),
        ({"survey": AS_USER}, "Missing sudo password.", "no_privilege", "Missing sudo password."),
        (
            {"unreachable": True, "msg": "Failed to connect to the host via ssh: ssh: Could not resolve hostname x"},
            "",
            "unreachable",
            "ssh: Could not resolve hostname x.",
        ),
        (
            {"msg": "The module interpreter '/usr/bin/python3' was not found.", "rc": 127},
            "Missing sudo password.",
            "no_python",
            "The module interpreter '/usr/bin/python3' was not found.",
        ),
        (
            {"msg": "MODULE FAILURE", "module_stderr": "Welcome\nbash: /usr/bin/python3: No such file or directory"},
            "",
            "no_python",
            "bash: /usr/bin/python3: No such file or directory.",
        ),
        ({"msg": "ip -j: ip is not installed (exit 127)"}, "", "failed", "ip -j: ip is not installed (exit 127)."),
        ({}, "", "failed", "no reason was given."),
    ],
)  # fmt: skip
def test_outcome(answer: dict[str, Any], refusal: str, obstacle: str | None, reason: str) -> None:
    survey = answer.get("survey")
    assert contact.outcome(answer, refusal) == {"survey": survey, "obstacle": obstacle, "reason": reason}


def test_a_connection_that_waits_for_sudo_in_vain_may_still_look_as_a_user() -> None:
    assert contact.about_root("Timeout (12s) waiting for privilege escalation prompt: ")
    assert not contact.about_root("ssh: connect to host 192.0.2.10 port 22: Connection timed out")
