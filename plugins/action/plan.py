# SPDX-License-Identifier: Apache-2.0
"""Plan the rings of a run on the controller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

from ansible.inventory.manager import InventoryManager
from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import runs, selection, store
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import VARIABLES, Inventory

ARGUMENTS: dict[str, Any] = {
    "mode": {"type": "str", "choices": list(store.MODES), "default": "create"},
    "plans_dir": {"type": "path", "required": True},
}


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.ring``; see ``plugins/modules/plan.py``."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True
    arguments: ClassVar[dict[str, Any]] = {
        **ARGUMENTS,
        "bindings": {"type": "dict", "default": {}},
        "applicable": {"type": "bool", "default": False},
        "degraded": {"type": "raw"},
        "lost": {"type": "dict"},
    }

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Make the documents of all rings of the run, then write what the mode allows."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = to_plain(self.validate_argument_spec(self.arguments)[1])
        self._hostvars = (task_vars or {}).get("hostvars", {})
        try:
            outcome = self.work(self._rings(task_vars or {}), given)
            if outcome.changed and given["mode"] != "check" and not self._task.check_mode:
                outcome.write()
        except (RingError, OSError) as error:
            return {**result, "failed": True, "changed": False, "msg": str(error)}
        changed = outcome.changed and given["mode"] != "check"
        made = {"changed": changed, **outcome.documents, "diff": outcome.diff()}
        return {**result, **made, "sparkring_lines": outcome.lines}

    def work(self, rings: list[Inventory], given: dict[str, Any]) -> runs.Outcome:
        """What this action makes of the rings."""
        losses = runs.Losses(given["degraded"], given["lost"])
        folder = Path(given["plans_dir"])
        return runs.plan(rings, folder, given["mode"], given["bindings"], given["applicable"], losses)

    def variable(self, ring: Inventory, name: str) -> Any:
        """A ring's own variable, which is that of its head; None where it is not set."""
        values = self._hostvars[ring.hosts[0].name]
        return to_plain(values[name]) if name in values else None

    def _rings(self, task_vars: dict[str, Any]) -> list[Inventory]:
        sources = [str(source) for source in task_vars["ansible_inventory_sources"] or []]
        group = InventoryManager(loader=self._loader, sources=sources).groups.get(selection.GROUP)
        children = sorted(group.child_groups, key=lambda child: child.name) if group else []
        groups = [(str(child.name), [str(host.name) for host in child.get_hosts()]) for child in children]
        hostvars = task_vars["hostvars"]
        names = [name for _ring, hosts in groups for name in hosts]
        variables = {
            name: {key: to_plain(hostvars[name][key]) for key in VARIABLES if key in hostvars[name]} for name in names
        }
        shown = [os.path.relpath(source) if source.startswith(os.getcwd() + os.sep) else source for source in sources]
        return runs.choose(groups, variables, shown, [str(name) for name in task_vars["ansible_play_hosts_all"]])
