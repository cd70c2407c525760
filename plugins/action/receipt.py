# SPDX-License-Identifier: Apache-2.0
"""Write the receipt of one verification and say what it found."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_core

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils.receipt import verdict, words

ROOT = Path(__file__).resolve().parents[2]


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.receipt``; see ``plugins/modules/receipt.py``."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Judge the results, write the receipt, fail when anything does not hold."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            {
                "plans": {"type": "dict", "required": True},
                "checks": {"type": "dict", "required": True},
                "lanes": {"type": "list", "elements": "dict", "required": True},
                "surveys": {"type": "dict", "default": {}},
                "plans_dir": {"type": "path", "required": True},
            }
        )
        given = to_plain(arguments)
        plans_dir = Path(given.pop("plans_dir"))
        try:
            version = verdict.collection_version(ROOT)
            receipt = verdict.make_receipt(
                **given, collection=version, ansible_core=ansible_core, now=datetime.now(UTC)
            )
            path = verdict.write_receipt(receipt, plans_dir)
        except (verdict.ReceiptError, ValueError, OSError) as error:
            return {**result, "failed": True, "changed": False, "msg": str(error)}
        return {
            **result,
            "changed": False,
            "failed": not receipt.ok,
            "msg": receipt.summary,
            "sparkring_lines": words.lines(receipt),
            "sparkring_findings": words.findings(receipt),
            "path": str(path),
            "evidence": receipt.evidence,
        }
