# SPDX-License-Identifier: Apache-2.0
"""Show the cables of the surveyed rings, or compare them with what the inventory declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.inventory.manager import InventoryManager
from ansible.plugins.action import ActionBase
from pydantic import ValidationError

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils import cabling
from ansible_collections.sparkring.cluster.plugins.plugin_utils.cabling import inventory_file
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import selection
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.cabling``; see ``plugins/modules/cabling.py``."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Print cables and findings; with ``declared`` only contradictions, which fail the task."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = to_plain(
            self.validate_argument_spec(
                {
                    "surveys": {"type": "dict", "required": True},
                    "declared": {"type": "bool", "default": False},
                    "write_inventory": {"type": "path"},
                }
            )[1]
        )
        variables = (task_vars or {})["hostvars"]
        try:
            groups = examine.rings(self._groups(task_vars or {}), list(given["surveys"]))
            rings = {name: cabling.discover(given["surveys"], hosts) for name, hosts in groups.items()}
            if given["declared"]:
                declared = {name: variables[hosts[0]].get("sparkring_layout") for name, hosts in groups.items()}
                return {**result, "changed": False, **cabling.gate(rings, declared, groups)}
            lines = [line for name, found in rings.items() for line in cabling.shown(name, found)]
            made: dict[Path, str] = {}
            wanted = (*inventory_file.HOST_VARIABLES, *inventory_file.RING_VARIABLES)
            if given["write_inventory"]:
                plain = {
                    host: {key: to_plain(variables[host][key]) for key in wanted if key in variables[host]}
                    for hosts in groups.values()
                    for host in hosts
                }
                made = inventory_file.files(Path(given["write_inventory"]), rings, plain)
                if not self._task.check_mode:
                    inventory_file.write(made)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            msg = f"A survey is damaged at {where}; run survey again."
            return {**result, "failed": True, "changed": False, "msg": msg}
        except (RingError, OSError) as error:
            return {**result, "failed": True, "changed": False, "msg": str(error)}
        return {**result, "changed": bool(made), "sparkring_lines": [*lines, *(f"wrote {path}" for path in made)]}

    def _groups(self, task_vars: dict[str, Any]) -> dict[str, list[str]]:
        sources = [str(source) for source in task_vars["ansible_inventory_sources"] or []]
        group = InventoryManager(loader=self._loader, sources=sources).groups.get(selection.GROUP)
        children = sorted(group.child_groups, key=lambda child: child.name) if group else []
        return {str(child.name): [str(host.name) for host in child.get_hosts()] for child in children}
