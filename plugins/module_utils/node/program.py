"""The node program: contract and host's library in one zip file that Python runs.

The bytes depend on the files alone: sorted names, one date, no compression.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

PACKAGE = "sparkring_node"
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = f"""import sys

from {PACKAGE}.node.main import main

sys.exit(main(sys.argv[1:]))
"""


def program_bytes(root: Path) -> bytes:
    """The program made from ``root``, the directory that holds ``contract`` and ``node``."""
    texts = {"__main__.py": _MAIN, f"{PACKAGE}/__init__.py": ""}
    for package in ("contract", "node"):
        for path in (root / package).glob("*.py"):
            texts[f"{PACKAGE}/{package}/{path.name}"] = path.read_text(encoding="utf-8")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(texts):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, texts[name])
    return stream.getvalue()
