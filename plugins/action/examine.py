# SPDX-License-Identifier: Apache-2.0
"""Survey a host for the doctor, whatever it lacks."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import contact


class ActionModule(ActionBase):
    """Runs the module ``survey``, without root where that cannot be had; see ``plugins/modules/examine.py``."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """A survey and when it was taken, or the obstacle; never a failure, so that the other hosts go on."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec({"management_interface": {"type": "str"}})
        arguments = {name: value for name, value in given.items() if value is not None}
        before = time.time()
        answer, refusal = self._ask(arguments, task_vars), ""
        if "survey" not in answer and not answer.get("unreachable") and self._connection.become:
            refusal = contact.reason(answer)
            self._connection.set_become_plugin(None)
            before = time.time()
            answer = self._ask(arguments, task_vars)
        found = contact.outcome(answer, refusal)
        return {**result, "changed": False, "before": before, "after": time.time(), **found}

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        try:
            return dict(self._execute_module("sparkring.cluster.survey", arguments, task_vars=task_vars))
        except AnsibleConnectionFailure as error:
            return {"unreachable": not contact.about_root(str(error)), "msg": str(error)}
        except AnsibleError as error:
            return {"msg": str(error)}
