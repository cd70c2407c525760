"""What a foreign recipe says, whichever format says it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .command import Command


@dataclass(frozen=True)
class Source:
    """A foreign file: its name, its bytes' hash, and its content by key."""

    path: Path
    content: dict[str, Any]
    lines: dict[tuple[str, ...], int]

    @property
    def told(self) -> str:
        """How the made recipe names it."""
        return f"{self.path.name} sha256:{hashlib.sha256(self.path.read_bytes()).hexdigest()}"


@dataclass
class Found:
    """One foreign recipe, its own keys reported; what is None it does not say, or it was refused."""

    format: str
    title: str
    model: str | None
    revision: str | None
    image: str | None
    command: Command | None
    environment: dict[str, Any] = field(default_factory=dict)
    notes: str = ""
    container: dict[str, Any] = field(default_factory=dict)
    """Fields of our ``container``."""
    startup: dict[str, Any] = field(default_factory=dict)
    image_needs: list[str] = field(default_factory=list)
    """Changes that the image must hold and that no import can make: patches, installed packages."""
    image_built: list[str] = field(default_factory=list)
    """How its own project builds the image."""
    least: tuple[str, int] | None = None
    most: tuple[str, int] | None = None
    """How many hosts it wants, and which key says so."""
