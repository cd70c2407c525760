"""A task that ends as its arguments say."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        time.sleep(arguments.pop("seconds", 0))
        return {**result, **arguments}
