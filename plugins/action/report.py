# SPDX-License-Identifier: Apache-2.0
"""Show surveys or the state of a host on the terminal."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils import report
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import readiness


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.report``; see ``plugins/modules/report.py``."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Print the lines; fail with the number of findings where a host is not as planned."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            {
                "surveys": {"type": "dict"},
                "plan": {"type": "dict"},
                "changes": {"type": "list", "elements": "dict"},
                "checks": {"type": "list", "elements": "dict"},
                "rank": {"type": "dict"},
            },
            required_one_of=[("surveys", "plan")],
            required_together=[("plan", "changes", "checks")],
        )
        given = to_plain(arguments)
        if given["surveys"]:
            lines, findings = report.survey_lines(given["surveys"]), 0
        else:
            lines = report.status_lines(given["plan"], given["changes"], given["checks"])
            findings = len(given["changes"]) + sum(not check["ok"] for check in given["checks"])
            if given["rank"]:
                said, good = readiness.line(given["plan"]["host"], given["rank"])
                lines, findings = [*lines, said], findings + (not good)
        return {
            **result,
            "changed": False,
            "failed": findings > 0,
            "msg": f"{findings} findings" if findings else "",
            "sparkring_lines": lines,
            "sparkring_findings": findings,
        }
