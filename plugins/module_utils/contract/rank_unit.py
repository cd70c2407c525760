"""What one rank of a deployment starts: a unit of systemd, its environment, and what must hold before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional

from . import documents, marks

DIRECTORY = marks.CONFIG_DIR + "/rank"
CURRENT = DIRECTORY + "/current"
"""The deployment that this host serves: its document, its unit and its environment, for root alone."""
PREVIOUS = DIRECTORY + "/previous"
"""The one before, kept whole for a rollback."""
DOCUMENT, UNIT_FILE, ENVIRONMENT = "unit.json", "rank.service", "environment"
KEY_PATH = DIRECTORY + "/key"
"""Key of the API on the head, as VLLM_API_KEY, for root alone."""
ENVIRONMENT_PATH = f"{CURRENT}/{ENVIRONMENT}"
DOCUMENT_PATH = f"{CURRENT}/{DOCUMENT}"
GID_PATH = marks.RUN_DIR + "/rank-gids"
"""GID indices of the rank, found anew at each start."""


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

    ``reference`` is its name, which on a host may stand for another image.
    ``entrypoint`` is None where the image's own stays, which must be ``own_entrypoint`` where that is known.
    """

    run: str
    reference: Optional[str]
    id: Optional[str]
    digest: Optional[str]
    entrypoint: Optional[List[str]]
    own_entrypoint: Optional[List[str]]


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
    must be equal on all ranks. ``fabric`` says whether it needs the plan laid. ``disk_bytes`` must be free for each
    folder that is written. ``status`` is a level of the recipe's vocabulary, and ``changed`` the settings that
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
    fabric: bool
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
    disk_bytes: int
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
