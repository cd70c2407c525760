# SPDX-License-Identifier: Apache-2.0
"""Run the nccl module; bring the controller's file to a host that lacks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.module_utils.node.nccl_library import digest


class ActionModule(ActionBase):
    """A shell over the module; see ``plugins/modules/nccl.py``."""

    supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = to_plain(dict(self._task.args))
        file = arguments.pop("file", None)
        if file:
            checking, self._task.check_mode = self._task.check_mode, True
            lacking = self._ask(arguments, task_vars)
            self._task.check_mode = checking
            if lacking.get("failed") or not lacking["changed"] or checking:
                return {**result, **lacking}
            try:
                arguments["file"] = self._brought(Path(file).expanduser(), arguments["sha256"])
            except (OSError, ValueError) as error:
                return {**result, "failed": True, "msg": f"{error}."}
        return {**result, **self._ask(arguments, task_vars)}

    def _brought(self, file: Path, sha256: str) -> str:
        """The file's path on the host; a file that is another one is not carried there."""
        with file.open("rb") as stream:
            found = digest(stream)
        if found != sha256:
            raise ValueError(
                f"SHA-256 of {file} is {found}, expected {sha256}: set sparkring_nccl_from.file to that library, or "
                "describe this one in sparkring_settings.nccl"
            )
        target = self._connection._shell.join_path(self._connection._shell.tmpdir or self._make_tmp_path(), file.name)
        self._transfer_file(str(file), target)
        return str(target)

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        name = "sparkring.cluster.nccl"
        return dict(self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars))
