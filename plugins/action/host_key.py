# SPDX-License-Identifier: Apache-2.0
"""Pin a host's ssh key on the controller before anything is sent to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.sparkring.cluster.plugins.plugin_utils import host_key


class ActionModule(ActionBase):
    """A shell over ``plugin_utils.host_key``; see ``plugins/modules/host_key.py``."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Pin the key when a fingerprint was given; otherwise return the one to confirm."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(
            {
                "address": {"type": "str", "required": True},
                "port": {"type": "int", "default": 22},
                "known_hosts": {"type": "path", "required": True},
                "fingerprints": {"type": "list", "elements": "str", "default": []},
            }
        )
        name, known_hosts = str((task_vars or {})["inventory_hostname"]), Path(str(given["known_hosts"]))
        address, port = str(given["address"]), int(given["port"])
        expected = [str(fingerprint) for fingerprint in given["fingerprints"]]
        try:
            if host_key.pinned(known_hosts, address, port):
                return {**result, "changed": False, "pinned": True}
            line, fingerprint = host_key.scan(name, address, port)
            if not expected:
                return {**result, "changed": False, "pinned": False, "fingerprint": fingerprint}
            host_key.refuse_wrong(name, fingerprint, expected)
            if not self._task.check_mode:
                host_key.pin(known_hosts, line)
        except (host_key.HostKeyError, OSError) as error:
            return {**result, "failed": True, "changed": False, "msg": str(error)}
        return {**result, "changed": True, "pinned": True, "fingerprint": fingerprint}
