# SPDX-License-Identifier: Apache-2.0
"""Make a recipe of another project into one of ours, with a report of every part; on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils.community import importing
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.reader import RecipeError


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.community``; see ``plugins/modules/import_recipe.py``."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Import the file and write the recipe; fail where a part of it is refused."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            {
                "source": {"type": "path", "required": True},
                "to": {"type": "path"},
                "recipes_dir": {"type": "path", "required": True},
                "layout": {"type": "str"},
            }
        )
        given = to_plain(arguments)
        to = Path(given["to"]) if given["to"] else None
        try:
            made = importing.run(Path(given["source"]), to, Path(given["recipes_dir"]), given["layout"] or None)
            if not self._task.check_mode:
                made.write()
        except (importing.CommunityError, RecipeError, OSError) as error:
            return {**result, "failed": True, "changed": False, "msg": str(error)}
        refused = len(made.report.refusals)
        return {
            **result,
            "changed": made.changed,
            "failed": refused > 0,
            "msg": made.verdict if refused else "",
            "diff": made.diff(),
            "path": str(made.path),
            "report": made.documents(),
            "sparkring_findings": refused,
            "sparkring_lines": made.lines,
        }
