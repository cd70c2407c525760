# SPDX-License-Identifier: Apache-2.0
"""Bind the hardware of the rings of a run on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.sparkring.cluster.plugins.action.plan import ARGUMENTS
from ansible_collections.sparkring.cluster.plugins.action.plan import ActionModule as PlanAction
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import runs
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory


class ActionModule(PlanAction):
    """A shell over ``plugin_utils.ring``; see ``plugins/modules/bind.py``."""

    arguments: ClassVar[dict[str, Any]] = {
        **ARGUMENTS,
        "surveys": {"type": "dict", "required": True},
        "partial": {"type": "bool", "default": False},
        "adopt": {"type": "bool"},
    }

    def work(self, rings: list[Inventory], given: dict[str, Any]) -> runs.Outcome:
        """Bindings of the rings from the surveys of their hosts."""
        folder = Path(given["plans_dir"])
        return runs.bind(rings, given["surveys"], folder, given["mode"], given["partial"], given["adopt"])
