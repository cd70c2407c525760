"""What one rank of a deployment starts: a unit of systemd, its environment, and what must hold before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional

from . import documents, marks

DIRECTORY = marks.CONFIG_DIR + "/ranks"
"""Environment files of ranks, for root alone."""
GID_DIRECTORY = marks.RUN_DIR + "/ranks"
"""GID indices of ranks, found anew at each start."""


@dataclass(frozen=True)
class Folder:
    """A folder of the host that the rank sees at ``target``; a ``venv`` rank sees it where it is."""

    source: str
    target: str
    write: bool


@dataclass(frozen=True)
class KnownFile:
    """A file of the host whose content is known. ``sha256`` is 64 hex digits."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Image:
    """The image of a ``container`` rank. ``run`` is what the engine is asked for; ids are like ``sha256:<hex>``.

    ``entrypoint`` is None where the image's own stays.
    """

    run: str
    id: Optional[str]
    digest: Optional[str]
    entrypoint: Optional[List[str]]


@dataclass(frozen=True)
class MemoryGate:
    """Memory that must be free before the start: GiB available, and free blocks of 32 MiB."""

    available_gib: int
    free_32mib_blocks: int


@dataclass(frozen=True)
class RankUnit:
    """One rank of a deployment.

    ``command`` is the engine's command line, without the entrypoint of a container. ``gids`` are variables whose
    value is the RoCE v2 GID index that all devices of the list share. ``invariant`` is a digest over everything that
    must be equal on all ranks. ``status`` is a level of the recipe's vocabulary, and ``changed`` the settings that
    took it away from the recipe's own.
    """

    schema: str
    deployment: str
    recipe: str
    ring: str
    plan_digest: str
    host: str
    rank: int
    ranks: int
    engine: str
    unit: str
    container: Optional[str]
    image: Optional[Image]
    options: List[str]
    command: List[str]
    environment: Dict[str, str]
    gids: Dict[str, List[str]]
    folders: List[Folder]
    files: List[KnownFile]
    ports: List[int]
    memory: Optional[MemoryGate]
    timeout_seconds: int
    api: Optional[str]
    model_name: str
    status: str
    changed: List[str]
    invariant: str

    @classmethod
    def from_plain(cls, value: object) -> RankUnit:
        """Read a unit; raises ValueError naming the first wrong field."""
        unit: RankUnit = documents.from_plain(cls, value)
        if unit.schema != documents.RANK_UNIT:
            raise ValueError(f"schema: {documents.RANK_UNIT} is needed, not {unit.schema}")
        return unit

    @property
    def environment_path(self) -> str:
        """Where the environment lies on the host."""
        return f"{DIRECTORY}/{self.deployment}.env"

    @property
    def key_path(self) -> str:
        """Where the head keeps the key of its API, as VLLM_API_KEY."""
        return f"{DIRECTORY}/{self.deployment}.key"

    @property
    def gid_path(self) -> str:
        """Where the GID indices of this start lie on the host."""
        return f"{GID_DIRECTORY}/{self.deployment}.env"

    @property
    def document_path(self) -> str:
        """Where this document lies on the host."""
        return f"{DIRECTORY}/{self.deployment}.json"
