"""An inventory with layout and host order as the cables show them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.selection import GROUP

from .discovery import Discovery

HOST_VARIABLES = (
    *("ansible_host", "ansible_port", "ansible_user", "ansible_ssh_private_key_file", "ansible_ssh_common_args"),
    *("ansible_python_interpreter", "sparkring_management_interface"),
)
RING_VARIABLES = ("sparkring_supernet", "sparkring_allow_research", "sparkring_source_port_rule")
DEFAULT_RING = "home"
"""Name of a ring whose hosts are in no group of their own."""


def files(folder: Path, rings: Mapping[str, Discovery], variables: Mapping[str, Mapping[str, Any]]) -> dict[Path, str]:
    """What is to be written by path; ``variables`` are by host, and passwords among them are left out.

    Raises RingError where a ring's cables make no layout, or a file stands already.
    """
    children: dict[str, Any] = {}
    made: dict[Path, str] = {}
    for name, found in rings.items():
        if found.layout is None:
            raise RingError(f"Ring {name}: its cables make no layout, so no inventory is written; mend them first.")
        ring = DEFAULT_RING if name == GROUP else name
        children[ring] = {"hosts": {host: _chosen(variables[host], HOST_VARIABLES) for host in found.hosts}}
        group = {"sparkring_layout": found.layout, **_chosen(variables[found.hosts[0]], RING_VARIABLES)}
        made[folder / "group_vars" / f"{ring}.yml"] = _text(group)
    made = {folder / "hosts.yml": _text({GROUP: {"children": children}}), **made}
    for path in made:
        if path.exists():
            raise RingError(f"{path} exists and is not overwritten; give another sparkring_write_inventory or move it.")
    return made


def write(made: Mapping[Path, str]) -> None:
    """Write the files; raises OSError where one came to be meanwhile."""
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)


def _chosen(variables: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: variables[name] for name in names if name in variables}


def _text(document: Mapping[str, Any]) -> str:
    return "---\n" + yaml.safe_dump(document, sort_keys=False, width=1000)
