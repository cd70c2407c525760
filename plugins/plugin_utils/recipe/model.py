"""What a recipe says: one model, its image, the ring it needs, and the command line that serves it.

Arguments and environment are the engine's business and are carried as they are written, but for the names in braces
that ``words.py`` lists. An unknown value is left out, never guessed.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import words
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import layouts

SCHEMA = "sparkring.recipe/1"

Level = Literal[
    "qualified",
    "implemented-tp4-smoke-verified",
    "implemented",
    "implemented-unqualified-configuration",
    "research-only",
    "unsupported",
]
"""What is claimed of exact settings, the most first (facts: recipes 3)."""
UNQUALIFIED: Level = "implemented-unqualified-configuration"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Port = Annotated[int, Field(ge=1024, le=65535)]
Bytes = Annotated[int, Field(ge=0, description="bytes")]
Positive = Annotated[int, Field(ge=1)]
Words = Annotated[str, Field(min_length=1)]
ContainerPath = Annotated[str, Field(pattern=r"^/[^:,\n]*$", description="Absolute path without colon or comma")]

PLACEHOLDER = re.compile(r"<(?!think>)[a-z][^<>]*>|\bCHANGE_?ME\b|\bTODO\b")
"""A hole in a text that somebody meant to fill; ``<think>`` is a token of models."""
LAUNCH_FLAGS = frozenset({
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--decode-context-parallel-size",
    "--distributed-executor-backend",
    "--nnodes",
    "--node-rank",
    "--master-addr",
    "--master-port",
    "--headless",
    "--host",
    "--port",
    "--served-model-name",
    "--api-key",
})  # fmt: skip
"""What the renderer writes itself, from ``parallel``, ``ports``, ``api`` and the plan."""


class Part(BaseModel):
    """A part of a recipe: no unknown field, no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Claim(Part):
    """A status that holds at other values than those of the file. ``at`` names settings, as an operator would."""

    level: Level
    at: Annotated[dict[str, Any], Field(min_length=1)]
    scope: str = ""


class Status(Part):
    """What was shown for the values of this file; ``scope`` says in words what that covers."""

    level: Level
    scope: str = ""
    claims: list[Claim] = []


class Weights(Part):
    """A checkpoint. ``files`` are those that bind its identity; ``identity`` is the hash that cache keys carry."""

    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    files: dict[str, Sha256] = {}
    identity: Sha256 | None = None
    bytes: Positive | None = Field(default=None, description="Size of all files, in bytes")
    licence: str | None = Field(default=None, description="SPDX identifier of its terms")
    restricted: bool = Field(default=False, description="Its terms restrict use, so an operator must accept them")
    notes: str = ""


class Image(Part):
    """A container image: ``digest`` is what a registry knows, ``id`` what ``docker image inspect`` shows."""

    reference: str | None = None
    digest: Digest | None = None
    id: Digest | None = None
    entrypoint: list[str] | None = Field(default=None, description="What runs the command; [] is the image's own")
    own_entrypoint: list[str] | None = Field(default=None, description="What the image's own is, where it stays")
    notes: str = ""


class Ring(Part):
    """What the recipe needs of the ring. ``mesh``: hosts that share no cable exchange RDMA over relays."""

    layout: str
    mesh: bool = False
    source_port_rule: bool = Field(default=False, description="The image marks relayed packets by UDP source port")

    @model_validator(mode="after")
    def _known(self) -> Ring:
        if layouts.layout(self.layout) is None:
            raise ValueError(f"layout {self.layout} is unknown; use {layouts.KNOWN}")
        return self


class Parallel(Part):
    """How the model is divided. An absent size is the engine's own default, which is 1."""

    tp: Annotated[int, Field(ge=1, le=8)]
    pp: Annotated[int, Field(ge=1, le=8)] | None = None
    dcp: Literal[1, 2, 4, 8] | None = None
    interleave: Literal["auto"] | Annotated[int, Field(ge=1, le=256)] | None = Field(
        default=None, description="Tokens that stay together in a divided KV cache; auto: 1 undivided, else 4"
    )
    gather: Literal["auto"] | bool | None = Field(
        default=None, description="Whether the compressed KV cache is gathered whole; auto: where it is divided"
    )

    @model_validator(mode="after")
    def _divides(self) -> Parallel:
        dcp = self.dcp or 1
        if self.tp % dcp:
            raise ValueError(f"dcp {dcp} does not divide tp {self.tp}")
        if isinstance(self.interleave, int):
            if 256 % self.interleave:
                raise ValueError(f"interleave {self.interleave} does not divide 256")
            if dcp > 1 and self.interleave % 4 and self.interleave != 1:
                raise ValueError(f"interleave {self.interleave} is no multiple of 4, which dcp {dcp} needs")
        return self

    @property
    def ranks(self) -> int:
        """How many ranks there are, one a host."""
        return self.tp * (self.pp or 1)


class Transport(Part):
    """Whose collectives run.

    ``image``: those of the image, whose recorded contract is rendered. ``nccl``: NCCL, its environment derived from
    the plan. ``gloo``: sockets, for engines without a GPU. ``rendezvous`` is the network on which ranks find each
    other.
    """

    provider: Literal["image", "nccl", "gloo"]
    collectives: Literal["nccl", "sircl", "rocenante", "gloo"]
    rendezvous: Literal["management", "fabric"] = "management"
    notes: str = ""


class Limits(Part):
    """How much is served at once."""

    context: Positive | None = Field(default=None, description="Tokens of one request, prompt and answer")
    sequences: Positive | None = Field(default=None, description="Requests that run at once")
    batched_tokens: Positive | None = Field(default=None, description="Tokens of one step")


class Kv(Part):
    """The KV cache of one rank. ``tokens`` is what the engine reported for the whole model."""

    bytes_per_rank: Positive | None = None
    tokens: Positive | None = None
    notes: str = ""


class Speculation(Part):
    """Tokens proposed ahead: ``depth`` a step."""

    method: Words
    depth: Annotated[int, Field(ge=1, le=16)]


class SparkCache(Part):
    """The persistent context cache of an image, and what it may use (facts: recipes 5)."""

    publication_schema: Literal["snapshot-v1", "tail-cow-v1", "tail-cow-v2", "page-tail-cow-v1"] | None = None
    access_mode: Literal["read-write", "restore-only", "store-only"] = "read-write"
    max_bytes: Bytes | None = None
    low_watermark_bytes: Bytes | None = None
    ttl_seconds: Annotated[int, Field(ge=0)] | None = None
    min_span_tokens: Positive | None = None
    max_span_tokens: Positive | None = None
    lease_seconds: Annotated[int, Field(ge=0, le=300)] | None = None
    load_threads: Positive | None = None
    pending_restores: Positive | None = None
    io_workers: Positive | None = None
    arena_bytes: Positive | None = None
    capture_slot_bytes: Positive | None = None
    capture_slots: Positive | None = None
    buffer_budget_bytes: Positive | None = None
    notes: str = ""

    @model_validator(mode="after")
    def _fits(self) -> SparkCache:
        if self.low_watermark_bytes and self.max_bytes and self.low_watermark_bytes > self.max_bytes:
            raise ValueError(f"low_watermark_bytes {self.low_watermark_bytes} is above max_bytes {self.max_bytes}")
        if self.min_span_tokens and self.max_span_tokens and self.min_span_tokens > self.max_span_tokens:
            raise ValueError(f"min_span_tokens {self.min_span_tokens} is above max_span_tokens {self.max_span_tokens}")
        if self.buffer_budget_bytes and self.buffers > self.buffer_budget_bytes:
            raise ValueError(
                f"its buffers take {self.buffers} bytes, above buffer_budget_bytes {self.buffer_budget_bytes}"
            )
        return self

    @property
    def buffers(self) -> int:
        """Pinned bytes a rank: two arenas for each restoring thread, and the capture slots."""
        restore = min(8, self.load_threads or 0) * 2 * (self.arena_bytes or 0)
        return restore + (self.capture_slots or 0) * (self.capture_slot_bytes or 0)


class Mount(Part):
    """A folder of the host in the container. ``of`` says what it holds; settings say where it lies."""

    of: Literal["model", "draft", "cache", "blobs", "logs", "contract", "weights-cache"]
    target: ContainerPath
    write: bool = False


class Container(Part):
    """What the container is given beyond network and IPC of the host, and RDMA where the transport needs it."""

    mounts: list[Mount] = []
    add_capabilities: list[Annotated[str, Field(pattern=r"^[A-Z_]+$")]] = []
    security_options: list[str] = []
    shared_memory: Annotated[str, Field(pattern=r"^\d+[mg]$")] | None = None
    memory_bytes: Positive | None = None
    memory_and_swap_bytes: Positive | None = None
    init: bool = False
    gpu: bool = Field(default=True, description="Whether it gets the host's GPU; not for an engine that runs on CPUs")


class Api(Part):
    """The OpenAI-compatible API of the head. ``flags``: which ranks are told of it on their command line."""

    port: Port
    name: Words
    flags: Literal["all", "head"] = "head"


class MemoryGate(Part):
    """What a host must have free before its rank starts (facts: recipes 10.1)."""

    available_gib: Positive
    free_32mib_blocks: Annotated[int, Field(ge=0)] = 0


class Startup(Part):
    """How long a start takes, what it needs, and in which order ranks go."""

    timeout_seconds: Positive = 1800
    memory: MemoryGate | None = None
    notes: str = ""


class Recipe(Part):
    """One model served in one way on one kind of ring."""

    schema_name: Literal["sparkring.recipe/1"] = Field(alias="schema")
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")]
    title: Words
    extends: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")] | None = Field(
        default=None, description="The one recipe that this one changes; same model, no further base"
    )
    lifecycle: Literal["current", "retired", "superseded"]
    replaced_by: str | None = None
    seed: str | None = Field(default=None, description="Row of the reference project's tables that it answers to")
    status: Status
    model: Weights
    draft: Weights | None = None
    image: Image = Image()
    ring: Ring
    parallel: Parallel
    transport: Transport
    limits: Limits = Limits()
    kv: Kv = Kv()
    captures: Literal["auto"] | list[Positive] | None = Field(
        default=None, description="Batch rows that CUDA graphs are made for; auto: every multiple of depth + 1"
    )
    speculation: Speculation | None = None
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")] | None = Field(
        default=None, description="Names the caches of this recipe; without it, its image and id do"
    )
    sparkcache: SparkCache | None = None
    sparkcache_supported: bool = False
    container: Container = Container()
    api: Api | None = None
    ports: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+$")], Port | list[Port]] = {}
    model_argument: Literal["positional", "--model", "none"] = "positional"
    arguments: dict[Annotated[str, Field(pattern=r"^--?[A-Za-z0-9][\w.-]*$")], Any] | None = None
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str] | None = None
    startup: Startup = Startup()
    evidence: dict[str, Any] | None = None
    unknown: list[str] = Field(default=[], description="Values that exist and are not recorded")
    provenance: str | None = Field(default=None, description="Where arguments and environment are known from")
    sources: list[str] = []
    notes: str = ""

    @model_validator(mode="after")
    def _whole(self) -> Recipe:
        self._layout()
        self._ports()
        if self.captures not in (None, "auto"):
            self._captures()
        if self.sparkcache is not None and not self.sparkcache_supported:
            raise ValueError("sparkcache is set, and sparkcache_supported is false")
        self._arguments()
        self._environment()
        return self

    def _layout(self) -> None:
        shape = layouts.layout(self.ring.layout)
        if shape is not None and shape.size is not None and shape.size != self.parallel.ranks:
            raise ValueError(
                f"ring.layout {shape.name} has {shape.size} hosts, and parallel makes {self.parallel.ranks} ranks"
            )

    def _ports(self) -> None:
        taken: dict[int, str] = {self.api.port: "api.port"} if self.api else {}
        for name, given in self.ports.items():
            for port in given if isinstance(given, list) else [given]:
                if port in taken:
                    raise ValueError(f"ports.{name} and {taken[port]} are both {port}")
                taken[port] = f"ports.{name}"

    def _captures(self) -> None:
        rows = (self.speculation.depth if self.speculation else 0) + 1
        largest = max(self.captures or [rows])
        if isinstance(largest, int) and largest % rows:
            raise ValueError(f"captures: the largest, {largest}, is no multiple of depth + 1 = {rows}")

    def _arguments(self) -> None:
        for flag, value in (self.arguments or {}).items():
            if flag in LAUNCH_FLAGS:
                raise ValueError(f"arguments.{flag} is written by the renderer; remove it")
            if value is None or value is False:
                raise ValueError(f"arguments.{flag} has no value; write true for a flag without one, or remove it")
            words.refuse_unknown(f"arguments.{flag}", value)
            _refuse_placeholder(f"arguments.{flag}", value)

    def _environment(self) -> None:
        for name, value in (self.environment or {}).items():
            if "\n" in value or "\0" in value:
                raise ValueError(f"environment.{name} has a line end, which an environment file cannot carry")
            if re.search(r"(API_KEY|TOKEN|SECRET|PASSWORD)$", name) and value:
                raise ValueError(f"environment.{name} looks like a secret; secrets do not belong into recipes")
            words.refuse_unknown(f"environment.{name}", value)
            _refuse_placeholder(f"environment.{name}", value)

    @property
    def unknowns(self) -> list[str]:
        """Everything a complete recipe says and this one does not, as field paths."""
        missing = list(self.unknown)
        for place, weights in (("model", self.model), ("draft", self.draft)):
            if weights is not None:
                known = {"revision": weights.revision, "files": weights.files, "bytes": weights.bytes}
                missing += [f"{place}.{name}" for name, value in known.items() if not value]
                missing += [f"{place}.licence"] if weights.licence is None else []
        if self.transport.provider != "gloo":
            image = self.image
            missing += ["image.digest"] if image.digest is None else []
            missing += ["image.id"] if image.id is None else []
            missing += ["image.entrypoint"] if image.entrypoint is None else []
        given = self.limits
        limits = {"context": given.context, "sequences": given.sequences, "batched_tokens": given.batched_tokens}
        missing += [f"limits.{name}" for name, value in limits.items() if value is None]
        missing += ["arguments"] if self.arguments is None else []
        missing += ["environment"] if self.environment is None else []
        missing += ["api"] if self.api is None else []
        missing += ["ports.rendezvous"] if "rendezvous" not in self.ports else []
        return missing

    @property
    def lacking(self) -> list[str]:
        """What must be known before it can be served, and is not; nothing for a servable recipe."""
        optional = {f"{place}.{name}" for place in ("model", "draft") for name in ("files", "bytes", "licence")}
        either = {"image.digest", "image.id"}
        missing = [name for name in self.unknowns if name not in optional]
        if not either <= set(missing):
            missing = [name for name in missing if name not in either]
        if self.parallel.ranks > 1 or self.transport.provider != "gloo":
            return missing
        return [name for name in missing if name != "ports.rendezvous"]


def _refuse_placeholder(place: str, value: Any) -> None:
    """Raise ValueError where a value holds a placeholder, however deep."""
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_placeholder(f"{place}.{key}", item)
    elif isinstance(value, list):
        for item in value:
            _refuse_placeholder(place, item)
    elif isinstance(value, str) and (found := PLACEHOLDER.search(value)):
        raise ValueError(f"{place}: {found[0]} is a placeholder; write the value, or list the field under unknown")
