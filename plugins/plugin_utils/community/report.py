"""What became of each part of a foreign recipe, one line a part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["mapped", "chosen", "dropped", "refused"]
KINDS: tuple[Kind, ...] = ("mapped", "chosen", "dropped", "refused")
ARROW = {"mapped": " -> "}


@dataclass(frozen=True)
class Line:
    """``path`` names a part of the foreign file; of what is ``chosen`` it names the field of ours."""

    kind: Kind
    path: str
    said: str

    @property
    def text(self) -> str:
        """The line for the terminal."""
        return f"{self.kind:<8} {self.path}{ARROW.get(self.kind, ': ')}{self.said}"


@dataclass
class Report:
    """The lines of one import."""

    found: list[Line] = field(default_factory=list)

    def mapped(self, path: str, ours: str) -> None:
        """A part that the recipe carries, and the field that carries it."""
        self.found.append(Line("mapped", path, ours))

    def chosen(self, ours: str, said: str) -> None:
        """A field that the foreign file says nothing of and an operator may choose otherwise."""
        self.found.append(Line("chosen", ours, said))

    def dropped(self, path: str, why: str) -> None:
        """A part that the recipe does without."""
        self.found.append(Line("dropped", path, why))

    def refused(self, path: str, why: str) -> None:
        """A part without which the recipe would be another one: nothing is imported."""
        self.found.append(Line("refused", path, why))

    def drop_known(self, prefix: str, given: Iterable[str], known: dict[str, str]) -> None:
        """Drop parts by a table of reasons; what it lacks is dropped as unknown."""
        for name in given:
            self.dropped(f"{prefix}{name}", known.get(name, "SparkRing does not know it"))

    @property
    def refusals(self) -> list[Line]:
        """What stands in the way."""
        return [line for line in self.found if line.kind == "refused"]

    @property
    def ordered(self) -> list[Line]:
        """What is carried first, what is refused last; else in the order of the file."""
        return sorted(self.found, key=lambda line: KINDS.index(line.kind))
