"""Run the fabric module with the node program, and the marker's source where the card marks."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS
from ansible_collections.sparkring.cluster.plugins.module_utils.node.program import program_bytes

LIBRARY = Path(__file__).resolve().parent.parent / "module_utils"
MARKER_SOURCE = LIBRARY / "node" / "marker_mlx5.c"


class ActionModule(ActionBase):
    """Adds what the host cannot have yet and calls the module once."""

    supports_check_mode = True
    supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = to_plain(dict(self._task.args))
        plan = arguments.get("plan")
        if arguments.get("state", "present") == "present" and isinstance(plan, dict):
            arguments["program"] = base64.b64encode(program_bytes(LIBRARY)).decode()
            driver = DRIVERS.get(str(plan.get("driver")))
            if driver is not None and driver.marks_in_nic:
                arguments["marker_source"] = MARKER_SOURCE.read_text(encoding="utf-8")
        result.update(
            self._execute_module(module_name="sparkring.cluster.fabric", module_args=arguments, task_vars=task_vars)
        )
        return result
