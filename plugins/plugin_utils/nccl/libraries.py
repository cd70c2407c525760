"""The NCCL libraries that are known by digest, from ``libraries.json``, and what a patched one can do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Patch = Literal["skip-tree", "ring-only", "all-gids", "two-domains"]
"""What a library can do that NVIDIA's cannot (facts: transport 6.1).

``skip-tree`` and ``ring-only`` connect the ring alone, asked by different variables; ``all-gids`` offers every device's
address, so that the neighbour finds the one in its subnet; ``two-domains`` uses both PCIe functions of a cable.
"""


class LibraryError(ValueError):
    """A library that cannot be used as it is described."""


class Library(BaseModel):
    """One library file. ``sha256`` is that of ``libnccl.so.2``; ``version`` is what it calls itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    version: Annotated[str, Field(pattern=r"^2\.\d+\.\d+$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    patches: tuple[Patch, ...]
    source: Annotated[str, Field(min_length=1)]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]

    @property
    def closes_rings(self) -> bool:
        """Whether it runs on a ring where not every host shares a cable with every other."""
        return "two-domains" in self.patches or bool({"skip-tree", "ring-only"} & set(self.patches))


KNOWN = {
    library.id: library
    for library in map(
        Library.model_validate,
        json.loads(Path(__file__).with_name("libraries.json").read_text(encoding="utf-8"))["libraries"],
    )
}


def find(given: object) -> Library:
    """The library of an id, or the one that a mapping describes; raises LibraryError."""
    if isinstance(given, str):
        if given not in KNOWN:
            raise LibraryError(f"sparkring_nccl: {given} is not known: name {' or '.join(KNOWN)}, or describe a file")
        return KNOWN[given]
    try:
        return Library.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["sparkring_nccl", *(str(part) for part in first["loc"])])
        raise LibraryError(f"{place}: {first['msg']}") from error
