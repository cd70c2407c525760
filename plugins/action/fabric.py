"""Run the fabric module with the node program, whose run this is, and the marker's source where the card marks."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS
from ansible_collections.sparkring.cluster.plugins.module_utils.node.program import program_bytes
from ansible_collections.sparkring.cluster.plugins.plugin_utils import runs

LIBRARY = Path(__file__).resolve().parent.parent / "module_utils"
MARKER_SOURCE = LIBRARY / "node" / "marker_mlx5.c"


class ActionModule(ActionBase):
    """Adds what the host cannot have yet; called again only to go on where a run of the same operator was killed."""

    supports_check_mode = True
    supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = to_plain(dict(self._task.args))
        plan = arguments.get("plan")
        # This is a process of its own for one task of one host; its parent is the run.
        arguments["operator"], arguments["run"] = runs.operator(), runs.name(os.getppid())
        state = arguments.get("state", "present")
        if state != "confirmed":
            arguments["program"] = base64.b64encode(program_bytes(LIBRARY)).decode()
            arguments.setdefault("revert_after", self._patience(task_vars or {}))
        if state == "present" and isinstance(plan, dict):
            driver = DRIVERS.get(str(plan.get("driver")))
            if driver is not None and driver.marks_in_nic:
                arguments["marker_source"] = MARKER_SOURCE.read_text(encoding="utf-8")
        answer = self._ask(arguments, task_vars)
        gone = runs.continued(answer, arguments["operator"])
        if gone is not None:
            answer = self._ask({**arguments, "continues": gone}, task_vars)
        result.update(answer)
        return result

    def _patience(self, task_vars: dict[str, Any]) -> int:
        at_once = [int(given) for given in (self._task.throttle, task_vars["ansible_forks"]) if given]
        return runs.patience(len(task_vars["ansible_play_hosts_all"]), min(at_once))

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        name = "sparkring.cluster.fabric"
        return dict(self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars))
