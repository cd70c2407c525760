# SPDX-License-Identifier: Apache-2.0
"""Say what NCCL is told on the rings of a run, and why; on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.sparkring.cluster.plugins.action.plan import ActionModule as PlanAction
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl import explain, libraries
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import runs
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory


class ActionModule(PlanAction):
    """A shell over ``plugin_utils.nccl``; see ``plugins/modules/explain.py``."""

    arguments: ClassVar[dict[str, Any]] = {
        "plans_dir": {"type": "path", "required": True},
        "nccl": {"type": "raw"},
    }

    def work(self, rings: list[Inventory], given: dict[str, Any]) -> runs.Outcome:
        """The sentences of all rings, whose plans must stand as they would be made."""
        try:
            library = libraries.find(given["nccl"]) if given["nccl"] else None
        except libraries.LibraryError as error:
            raise RingError(str(error)) from error
        planned = runs.plan(rings, Path(given["plans_dir"]), "check")
        plans = [RingPlan.from_plain(document) for document in planned.documents["rings"].values()]
        return runs.Outcome({}, [], list(explain.lines(plans, library)))
