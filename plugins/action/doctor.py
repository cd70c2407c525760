# SPDX-License-Identifier: Apache-2.0
"""Judge the surveyed hosts of a run, ring by ring."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ansible.inventory.manager import InventoryManager
from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine, report
from ansible_collections.sparkring.cluster.plugins.plugin_utils.receipt.verdict import collection_version
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import selection
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import VARIABLES

ROOT = Path(__file__).resolve().parents[2]


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.doctor``; see ``plugins/modules/doctor.py``."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Examine every ring, write the report, fail with the number of findings that are faults."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            {
                "examined": {"type": "dict", "required": True},
                "only": {"type": "list", "elements": "str", "default": []},
                "silence": {"type": "dict", "default": {}},
                "report": {"type": "list", "elements": "path", "default": []},
                "plans_dir": {"type": "path"},
            }
        )
        given = to_plain(arguments)
        try:
            examine.check_selection(given["only"], given["silence"])
            report.check_paths(given["report"])
            patients = self._patients(given, task_vars or {})
            diagnoses = [examine.diagnose(patient, given["only"], given["silence"]) for patient in patients]
            made = report.make(diagnoses, collection_version(ROOT), datetime.now(UTC))
            report.write(made, given["report"])
        except (examine.DoctorError, OSError) as error:
            return {**result, "failed": True, "changed": False, "msg": str(error)}
        return {**result, "changed": False, **report.outcome(made, given["report"])}

    def _patients(self, given: dict[str, Any], task_vars: dict[str, Any]) -> Iterator[examine.Patient]:
        sources = [str(source) for source in task_vars["ansible_inventory_sources"] or []]
        group = InventoryManager(loader=self._loader, sources=sources).groups.get(selection.GROUP)
        groups = [(str(child.name), child.get_hosts()) for child in group.child_groups] if group else []
        rings = {name: [str(host.name) for host in hosts] for name, hosts in sorted(groups, key=lambda item: item[0])}
        hostvars = task_vars["hostvars"]
        for name, hosts in examine.rings(rings, list(given["examined"])).items():
            shown = {key: to_plain(hostvars[hosts[0]][key]) for key in VARIABLES if key in hostvars[hosts[0]]}
            folder = Path(given["plans_dir"]) if given["plans_dir"] else None
            yield examine.Patient(name, hosts, given["examined"], shown, folder)
