"""Which rings a run works on, and what it refuses before it looks at any of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from .errors import RingError
from .inventory import Inventory

GROUP = "sparkring"
"""Inventory group whose child groups are the rings."""
INVENTORY_NAMES = ("hosts", "hosts.yml", "hosts.yaml", "group_vars", "host_vars", "ansible_inventory.yml")
"""What an inventory directory may hold; the last is what Molecule writes beside the others."""
IGNORED_SUFFIXES = ("~", ".orig", ".cfg", ".retry", ".bak", ".swp", ".md", ".txt", ".rst")
"""File endings that Ansible itself leaves out of an inventory directory."""


def check_sources(sources: Iterable[str]) -> None:
    """Refuse an inventory directory that holds anything but inventory: Ansible would parse it."""
    for source in sources:
        directory = Path(source)
        if not directory.is_dir():
            continue
        for path in sorted(directory.iterdir()):
            name = path.name
            known = name in INVENTORY_NAMES or name.endswith((".ini", *IGNORED_SUFFIXES)) or name.startswith(".")
            if not known:
                raise RingError(
                    f"Inventory directory {source} holds {name}, which is not inventory; "
                    f"move it out or give -i {directory / 'hosts.yml'}."
                )


def in_run(rings: Iterable[Inventory], hosts: Collection[str]) -> list[Inventory]:
    """Rings whose hosts all take part in the run; all rings when the run has none of their hosts.

    Raises RingError for a ring that the run holds only in part.
    """
    rings = list(rings)
    chosen = []
    for inventory in rings:
        missing = [host.name for host in inventory.hosts if host.name not in hosts]
        if not missing:
            chosen.append(inventory)
        elif len(missing) < len(inventory.hosts):
            raise RingError(
                f"Ring {inventory.ring}: the limit leaves out {', '.join(missing)}; "
                f"a ring is worked on as a whole, so limit to {inventory.ring} or to nothing."
            )
    return chosen or rings
