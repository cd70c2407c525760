# SPDX-License-Identifier: Apache-2.0
"""Show the lines that SparkRing's tasks mean for the user."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lines
type: aggregate
short_description: Show the lines that SparkRing's tasks mean for the user
version_added: "0.1.0"
description:
  - Prints the list V(sparkring_lines) of a task's result as it stands, so that C(ansible-playbook) shows the same
    tables and diffs as the command C(sparkring).
author: SparkRing contributors (@sparkring)
requirements:
  - C(callbacks_enabled) names it.
"""

from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Prints ``sparkring_lines`` verbatim."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "sparkring.cluster.lines"
    CALLBACK_NEEDS_ENABLED = True

    def _show(self, result: Any) -> None:
        for line in result.result.get("sparkring_lines") or ():
            self._display.display(str(line))

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task that went well."""
        self._show(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task that failed, with findings perhaps."""
        self._show(result)
