# SPDX-License-Identifier: Apache-2.0
"""Say which recipes the rings of a run can serve, and why not the others; on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.sparkring.cluster.plugins.action.plan import ActionModule as PlanAction
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import listing, reader, settings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import runs
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory


class ActionModule(PlanAction):
    """A shell over ``plugin_utils.recipe``; see ``plugins/modules/recipes.py``."""

    arguments: ClassVar[dict[str, Any]] = {
        "plans_dir": {"type": "path", "required": True},
        "recipes_dir": {"type": "path", "required": True},
    }

    def work(self, rings: list[Inventory], given: dict[str, Any]) -> runs.Outcome:
        """The verdicts of all rings, whose plans must stand as they would be made."""
        planned = runs.plan(rings, Path(given["plans_dir"]), "check")
        documents: dict[str, Any] = {}
        lines: list[str] = []
        try:
            found = reader.read_all(Path(given["recipes_dir"]))
            for ring in rings:
                plan = RingPlan.from_plain(planned.documents["rings"][ring.ring])
                asked = settings.read(self.variable(ring, settings.VARIABLE))
                documents[ring.ring] = listing.documents(plan, found, asked)
                lines += listing.lines(plan, found, asked)
        except (reader.RecipeError, settings.SettingsError) as error:
            raise RingError(str(error)) from error
        return runs.Outcome({"recipes": documents}, [], lines)
