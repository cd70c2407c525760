# SPDX-License-Identifier: Apache-2.0
"""Run the rank module; wait on the controller where all ranks must come up together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import readiness

PAUSE_SECONDS = 3.0


class ActionModule(ActionBase):
    """A shell over the module and ``plugin_utils.recipe.readiness``; see ``plugins/modules/rank.py``."""

    supports_check_mode = True
    supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = to_plain(dict(self._task.args))
        self._host = str((task_vars or {}).get("inventory_hostname"))
        if arguments.get("state") == "ready":
            return {**result, **self._wait(task_vars)}
        return {**result, **self._ask(arguments, task_vars)}

    def _wait(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        # One process for each host of this task: they tell each other through the folder that ends with the run.
        board = readiness.Board(Path(constants.DEFAULT_LOCAL_TMP) / f"ready-{self._task._uuid}")
        began = time.monotonic()
        while True:
            answer = self._ask({"state": "observed", "probe": True}, task_vars)
            if answer.get("failed"):
                return answer
            verdict = board.verdict(self._host, answer["rank"], time.monotonic() - began)
            if verdict is not None:
                return {**answer, **verdict}
            time.sleep(PAUSE_SECONDS)

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        name = "sparkring.cluster.rank"
        return dict(self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars))
