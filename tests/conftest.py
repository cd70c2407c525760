"""Make the checkout importable as the collection ``sparkring.cluster``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COLLECTIONS = REPOSITORY / ".cache" / "collections"


def _link() -> None:
    link = COLLECTIONS / "ansible_collections" / "sparkring" / "cluster"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(REPOSITORY, target_is_directory=True)
        importlib.invalidate_caches()


_link()
sys.path.insert(0, str(COLLECTIONS))
