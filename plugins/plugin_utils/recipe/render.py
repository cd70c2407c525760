"""Recipe, plan and settings make one unit a rank. Pure: the same input gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents, marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import (
    Folder,
    Image,
    KnownFile,
    MemoryGate,
    RankUnit,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl import environment as nccl_environment
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl import libraries
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import model, status, words
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import settings as operator
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.places import Places
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.settings import Settings, SettingsError

LOOPBACK = "127.0.0.1"
"""vLLM itself is reached from its own host only (DESIGN 9)."""
NCCL_IN_CONTAINER = "/opt/sparkring-node/nccl/libnccl.so.2"
JIT_BYTES = 32 << 30
"""Room for compiled code in a cache (facts: recipes 6)."""
MODELS = "/var/lib/sparkring/models"
CACHE = "/var/cache/sparkring"
RANK_FLAGS = {"--node-rank": 1, "--headless": 0, "--host": 1, "--port": 1}
"""Flags that may differ from rank to rank, and how many words follow each."""
DERIVED_PER_RANK = {"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "VLLM_HOST_IP"}
"""Variables that may differ from rank to rank where the environment is derived from the plan."""


def units(recipe: Recipe, plan: RingPlan, settings: Settings) -> list[RankUnit]:
    """One unit a rank, in the order of the ranks; raises SettingsError where it cannot be rendered.

    Whether the recipe may be served on this ring is for ``fit`` to say; this renders an example ring's units too.
    """
    now = operator.applied(recipe, settings)
    for missing in ("arguments", "environment"):
        if missing in now.unknowns:
            raise SettingsError(f"Recipe {recipe.id} lacks {missing} and cannot be rendered; choose another one.")
    standing = status.of(recipe, settings)
    made = [
        _Rank(now, plan, settings, section, standing).unit()
        for section in sorted(plan.hosts.values(), key=lambda section: section.position)
    ]
    digests = {unit.host: _invariant(now, unit) for unit in made}
    if len(set(digests.values())) > 1:
        raise AssertionError(f"ranks differ in what must be equal on all: {digests}")
    return [replace(unit, invariant=digests[unit.host]) for unit in made]


class _Rank:
    """One rank on its way to a unit."""

    def __init__(
        self, recipe: Recipe, plan: RingPlan, settings: Settings, section: HostPlan, standing: status.Standing
    ) -> None:
        self.recipe, self.plan, self.settings, self.section, self.standing = recipe, plan, settings, section, standing
        self.rank = section.position
        self.places = Places(recipe, plan, section)
        self.engine = settings.engine or ("venv" if recipe.image == model.Image() else "container")
        self.deployment = settings.deployment or recipe.id
        self.library = operator.library(settings)
        self.rdma = recipe.transport.provider != "gloo"
        self.folders = list(self._folders())
        self.given = self._given()

    def unit(self) -> RankUnit:
        recipe, container = self.recipe, self.engine == "container"
        environment, gids = self._environment()
        name = f"sparkring-{self.deployment}-r{self.rank}"
        return RankUnit(
            schema=documents.RANK_UNIT,
            deployment=self.deployment,
            recipe=recipe.id,
            ring=self.plan.ring,
            plan_digest=self.plan.digest,
            host=self.section.host,
            rank=self.rank,
            ranks=recipe.parallel.ranks,
            engine=self.engine,
            fabric=self.rdma,
            unit=f"{marks.UNIT_PREFIX}rank@{self.deployment}.service",
            container=name if container else None,
            image=self._image() if container else None,
            options=list(self._options(name)) if container else [],
            command=[*self._program(), *self._model(), *self._arguments()],
            environment=environment,
            gids=gids,
            folders=self.folders,
            files=list(self._files()),
            ports=sorted(self._ports()),
            memory=self._memory(),
            disk_bytes=JIT_BYTES + ((recipe.sparkcache.max_bytes or 0) if recipe.sparkcache else 0) if container else 0,
            timeout_seconds=recipe.startup.timeout_seconds,
            api=f"http://{LOOPBACK}:{recipe.api.port}" if self.rank == 0 and recipe.api else None,
            model_name=recipe.api.name if recipe.api else recipe.id,
            status=self.standing.level,
            changed=self.standing.changed,
            invariant="",
        )

    def _program(self) -> list[str]:
        if self.engine == "container":
            return []
        if self.settings.venv is None:
            raise SettingsError(
                f"{operator.VARIABLE}.venv: recipe {self.recipe.id} runs without a container; say where vLLM is "
                "installed on the hosts."
            )
        return [f"{self.settings.venv}/bin/vllm", "serve"]

    def _image(self) -> Image:
        image = self.recipe.image
        known = f"{image.reference}@{image.digest}" if image.reference and image.digest else image.reference
        run = image.id or known or image.digest or "unknown"
        return Image(
            run=run,
            reference=image.reference,
            id=image.id,
            digest=image.digest,
            entrypoint=image.entrypoint or None,
            own_entrypoint=image.own_entrypoint,
        )

    def _folders(self) -> Iterator[Folder]:
        lying = {
            "model": f"{MODELS}/{self.recipe.model.repository}",
            "draft": f"{MODELS}/{self.recipe.draft.repository}" if self.recipe.draft else None,
            "cache": f"{CACHE}/{self.deployment}",
            "weights-cache": f"{CACHE}/{self.deployment}-weights",
            "logs": f"/var/log/sparkring/{self.deployment}",
        }
        given = self.settings.folders.model_dump(by_alias=True, exclude_none=True)
        for mount in self.recipe.container.mounts:
            source = given.get(mount.of) or lying.get(mount.of)
            if source is None:
                if mount.of == "blobs":  # only where the model's folder holds links into its sibling
                    continue
                raise SettingsError(
                    f"{operator.VARIABLE}.folders.{mount.of}: recipe {self.recipe.id} needs this folder of the hosts; "
                    "say where it lies."
                )
            yield Folder(source.replace("{host}", self.section.host), mount.target, mount.write)

    def _seen(self, of: str) -> str | None:
        """Where the process sees a folder: a container at its target, a program on the host where it lies."""
        kept = [mount for mount in self.recipe.container.mounts if mount.of == of]
        if not kept:
            return None
        folder = next(item for item in self.folders if item.target == kept[0].target)
        return folder.target if self.engine == "container" else folder.source

    def _given(self) -> dict[str, Any]:
        """The values of all names that a recipe may carry in braces."""
        recipe, dcp = self.recipe, self.recipe.parallel.dcp or 1
        interleave, gather = recipe.parallel.interleave, recipe.parallel.gather
        captures = captured(recipe)
        made: dict[str, Any] = {
            "context": recipe.limits.context,
            "sequences": recipe.limits.sequences,
            "batched_tokens": recipe.limits.batched_tokens,
            "kv_bytes": recipe.kv.bytes_per_rank,
            "tp": recipe.parallel.tp,
            "dcp": dcp,
            "interleave": (1 if dcp == 1 else 4) if interleave in ("auto", None) else interleave,
            "gather": int(dcp > 1 if gather in ("auto", None) else bool(gather)),
            "captures": captures,
            "captures_max": max(captures, default=None),
            "depth": recipe.speculation.depth if recipe.speculation else None,
            "model": self._seen("model"),
            "draft": self._seen("draft"),
            "name": recipe.api.name if recipe.api else None,
            "port": recipe.api.port if recipe.api else None,
            "rendezvous_port": recipe.ports.get("rendezvous"),
            "liveness_port": recipe.ports.get("liveness"),
            "namespace": namespace(recipe),
            "sparkcache": int(recipe.sparkcache is not None),
        }
        cache = recipe.sparkcache.model_dump() if recipe.sparkcache else {}
        made |= {name: cache.get(name.removeprefix("sparkcache_")) for name in words.RECIPE if "sparkcache_" in name}
        made |= self.places.values()
        return {name: value for name, value in made.items() if value is not None}

    def _filled(self, place: str, value: Any) -> Any:
        try:
            return words.fill(value, self.given)
        except KeyError as error:
            raise SettingsError(
                f"Recipe {self.recipe.id}: {place} needs {{{error.args[0]}}}, which has no value on ring "
                f"{self.plan.ring}, {self.plan.layout}; choose a recipe for this ring."
            ) from None

    def _model(self) -> list[str]:
        how = self.recipe.model_argument
        if how == "none":
            return []
        seen = self._seen("model")
        if seen is None:
            raise SettingsError(f"Recipe {self.recipe.id}: container.mounts has no model; add it.")
        return [seen] if how == "positional" else ["--model", seen]

    def _arguments(self) -> list[str]:
        recipe, parallel = self.recipe, self.recipe.parallel
        made: list[str] = []
        for flag, value in (recipe.arguments or {}).items():
            made += _words(flag, self._filled(f"arguments.{flag}", value))
        if recipe.api is not None:
            made += ["--served-model-name", recipe.api.name]
            if self.rank == 0 or recipe.api.flags == "all":
                made += ["--host", LOOPBACK, "--port", str(recipe.api.port)]
        made += ["--tensor-parallel-size", str(parallel.tp)]
        made += ["--pipeline-parallel-size", str(parallel.pp)] if parallel.pp is not None else []
        made += ["--decode-context-parallel-size", str(parallel.dcp)] if parallel.dcp is not None else []
        if parallel.ranks > 1:
            made += ["--distributed-executor-backend", "mp", "--nnodes", str(parallel.ranks)]
            made += ["--master-addr", self.places.head, "--master-port", str(recipe.ports.get("rendezvous"))]
            made += ["--node-rank", str(self.rank), *(["--headless"] if self.rank else [])]
        return made

    def _environment(self) -> tuple[dict[str, str], dict[str, list[str]]]:
        made: dict[str, str] = {}
        gids: dict[str, list[str]] = {}
        wanted = dict(self.recipe.environment or {})
        derived = self._derived()
        if derived is not None:
            wanted = {name: value for name, value in wanted.items() if not of_nccl(name)} | derived
        for name, value in wanted.items():
            asked = words.names(value) & self.places.gids.keys()
            if asked:
                gids[name] = self.places.gids[asked.pop()]
            elif derived is not None and name in derived:
                made[name] = value
            else:
                made[name] = str(self._filled(f"environment.{name}", value))
        if derived is not None and (preload := (self.recipe.environment or {}).get("LD_PRELOAD")):
            others = [path for path in preload.split(":") if "nccl" not in path]
            made["LD_PRELOAD"] = ":".join(filter(None, [*others, made.get("LD_PRELOAD", "")]))
        return {name: value for name, value in sorted(made.items()) if name != "LD_PRELOAD" or value}, gids

    def _derived(self) -> dict[str, str] | None:
        """NCCL's environment from the plan, or None where the recipe's own holds."""
        provider = self.recipe.transport.provider
        if provider == "gloo" and self.settings.nccl is None:
            return {"VLLM_HOST_IP": self.places.address, "GLOO_SOCKET_IFNAME": self.places.interface}
        if provider == "image" and self.settings.nccl is None:
            return None
        if (own := self.recipe.transport.collectives) != "nccl":
            raise SettingsError(
                f"{operator.VARIABLE}.nccl: the collectives of recipe {self.recipe.id} are {own}; remove the setting, "
                "or choose a recipe whose collectives are nccl."
            )
        try:
            made = nccl_environment.environment(self.plan, self.section.host, self.library, self._library_path())
        except ValueError as error:
            raise SettingsError(str(error)) from error
        return {item.name: item.value for item in made} | {"VLLM_HOST_IP": self.places.address}

    def _library_path(self) -> str:
        if self.library is None or self.engine == "container":
            return NCCL_IN_CONTAINER
        return library_path(self.library)

    def _options(self, name: str) -> Iterator[str]:
        box = self.recipe.container
        yield from ("--name", name, "--rm", "--pull", "never", "--no-healthcheck")
        yield from ("--network", "host", "--ipc", "host", *(["--gpus", "all"] if box.gpu else []))
        if self.rdma:  # pinned buffers and the devices that send them
            yield from ("--ulimit", "memlock=-1:-1", "--device", "/dev/infiniband")
        yield from ("--cap-drop", "ALL")
        for capability in box.add_capabilities:
            yield from ("--cap-add", capability)
        for option in ("no-new-privileges", *box.security_options):
            yield from ("--security-opt", option)
        if box.init:
            yield "--init"
        if box.shared_memory:
            yield from ("--shm-size", box.shared_memory)
        if box.memory_bytes:
            yield from ("--memory", str(box.memory_bytes))
        if box.memory_and_swap_bytes:
            yield from ("--memory-swap", str(box.memory_and_swap_bytes))
        for folder in self.folders:
            yield from ("--volume", f"{folder.source}:{folder.target}:{'rw' if folder.write else 'ro'}")
        if self.library is not None:
            yield from ("--volume", f"{library_path(self.library)}:{NCCL_IN_CONTAINER}:ro")
        for label, value in self._labels():
            yield from ("--label", f"{label}={value}")

    def _labels(self) -> Iterator[tuple[str, str]]:
        yield "sparkring.cluster.deployment", self.deployment
        yield "sparkring.cluster.recipe", self.recipe.id
        yield "sparkring.cluster.rank", str(self.rank)
        yield "sparkring.cluster.plan", self.plan.digest
        yield "sparkring.cluster.status", self.standing.level
        yield "sparkring.cluster.changed", ",".join(self.standing.changed) or "none"

    def _files(self) -> Iterator[KnownFile]:
        target = {folder.target: folder.source for folder in self.folders}
        lying: dict[str, str] = {
            mount.of: target[mount.target] for mount in self.recipe.container.mounts if mount.target in target
        }
        for of, weights in (("model", self.recipe.model), ("draft", self.recipe.draft)):
            for name, sha256 in sorted(weights.files.items()) if weights and of in lying else []:
                yield KnownFile(f"{lying[of]}/{name}", sha256)
        if self.library is not None:
            yield KnownFile(library_path(self.library), self.library.sha256)

    def _ports(self) -> set[int]:
        """Ports that the rank listens on: the head has the API and the rendezvous, every rank the others."""
        recipe = self.recipe
        made = {recipe.api.port} if recipe.api and self.rank == 0 else set()
        for name, given in recipe.ports.items():
            if self.rank == 0 or name not in ("rendezvous", "liveness"):
                made |= set(given) if isinstance(given, list) else {given}
        return made

    def _memory(self) -> MemoryGate | None:
        gate = self.recipe.startup.memory
        return MemoryGate(gate.available_gib, gate.free_32mib_blocks) if gate else None


def captured(recipe: Recipe) -> list[int]:
    """Batch rows that CUDA graphs are made for: as the recipe says, or a multiple of depth + 1 for each sequence."""
    if isinstance(recipe.captures, list):
        return recipe.captures
    if recipe.captures is None:
        return []
    rows = (recipe.speculation.depth if recipe.speculation else 0) + 1
    return [rows * number for number in range(1, (recipe.limits.sequences or 0) + 1)]


def namespace(recipe: Recipe) -> str:
    """A name for caches that no other image and no other recipe uses."""
    known = recipe.image.id or recipe.image.digest or ""
    return recipe.namespace or "-".join(filter(None, [known.removeprefix("sha256:")[:12], recipe.id]))


def library_path(library: libraries.Library) -> str:
    """Where a host keeps an NCCL library."""
    return f"{marks.LIB_DIR}/nccl/{library.sha256}/libnccl.so.2"


def of_nccl(name: str) -> bool:
    """Whether a variable is NCCL's, or leads to its library: where the plan derives it, a recipe's own goes."""
    return name.startswith("NCCL_") or name in ("VLLM_NCCL_SO_PATH", "LD_PRELOAD", "GLOO_SOCKET_IFNAME")


def _words(flag: str, value: Any) -> list[str]:
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        return [flag, json.dumps(value, separators=(",", ":"), ensure_ascii=False)]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, str(value)]


def _invariant(recipe: Recipe, unit: RankUnit) -> str:
    """Digest over what must be equal on all ranks: everything but the known differences."""
    asked = {name: words.names(value) for name, value in (recipe.environment or {}).items()}
    varying = {name for name, found in asked.items() if found & words.RANK.keys()} | DERIVED_PER_RANK
    seen = {item.source: item.target for item in unit.folders}
    options = [
        word for word in unit.options if not word.startswith("sparkring.cluster.rank=") and word != unit.container
    ]
    return documents.digest({
        "command": [seen.get(word, word) for word in _without_rank_flags(unit.command)],
        "environment": {name: value for name, value in unit.environment.items() if name not in varying},
        "gids": sorted(unit.gids),
        "files": [item.sha256 for item in unit.files],
        "image": unit.image,
        "options": [word for word in options if word.partition(":")[0] not in seen],
        "targets": [(item.target, item.write) for item in unit.folders],
        "plan": unit.plan_digest,
        "ranks": unit.ranks,
    })  # fmt: skip


def _without_rank_flags(command: list[str]) -> Iterator[str]:
    skip = 0
    for word in command:
        if skip:
            skip -= 1
        elif word in RANK_FLAGS:
            skip = RANK_FLAGS[word]
        else:
            yield word
