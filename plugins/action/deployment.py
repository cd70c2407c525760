# SPDX-License-Identifier: Apache-2.0
"""Make what each host of the rings of a run serves; on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.sparkring.cluster.plugins.action.plan import ActionModule as PlanAction
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import deployment, reader, settings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import runs
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory


class ActionModule(PlanAction):
    """A shell over ``plugin_utils.recipe.deployment``; see ``plugins/modules/deployment.py``."""

    arguments: ClassVar[dict[str, Any]] = {
        "plans_dir": {"type": "path", "required": True},
        "recipes_dir": {"type": "path", "required": True},
    }

    def work(self, rings: list[Inventory], given: dict[str, Any]) -> runs.Outcome:
        """The ranks of all rings, whose plans must stand as they would be made."""
        plans_dir, recipes_dir = Path(given["plans_dir"]), Path(given["recipes_dir"])
        planned = runs.plan(rings, plans_dir, "check")
        ranks: dict[str, Any] = {}
        lines: list[str] = []
        try:
            for ring in rings:
                plan = RingPlan.from_plain(planned.documents["rings"][ring.ring])
                wanted = self.variable(ring, deployment.VARIABLE)
                made = deployment.make(plan, recipes_dir, plans_dir, wanted, self.variable(ring, settings.VARIABLE))
                ranks |= made.ranks
                lines += made.lines
        except (deployment.DeploymentError, reader.RecipeError, settings.SettingsError) as error:
            raise RingError(str(error)) from error
        return runs.Outcome({"ranks": ranks}, [], lines)
