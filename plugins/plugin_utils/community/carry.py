"""A foreign recipe made into one of ours. What the file does not say stays absent."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import model, render

from .command import Command
from .found import Found, Source
from .report import Report

RENDEZVOUS = 29500
TITLE = 120
ENGINE_PORT = 8000
"""Where vLLM listens if its command does not say."""

PARALLEL = {
    "--tensor-parallel-size": "tp",
    "--pipeline-parallel-size": "pp",
    "--decode-context-parallel-size": "dcp",
}
LIMITS = {
    "--max-model-len": ("limits", "context", "context"),
    "--max-num-seqs": ("limits", "sequences", "sequences"),
    "--max-num-batched-tokens": ("limits", "batched_tokens", "batched_tokens"),
    "--kv-cache-memory-bytes": ("kv", "bytes_per_rank", "kv_bytes"),
}
"""Flags whose value is a field of the recipe: section, field, name in braces."""
RENDERED = "the renderer writes it from the plan"
KEY = "a key does not belong into a recipe; the proxy before the API asks for one"
WITHOUT = {
    "--host": "vLLM listens on the loopback address, and a proxy publishes it",
    "--api-key": KEY,
    "--hf-token": KEY.partition(";")[0],
    "--nnodes": RENDERED,
    "--node-rank": RENDERED,
    "--master-addr": RENDERED,
    "--headless": RENDERED,
    "--download-dir": "the checkpoint lies on every host before a rank starts",
    "--revision": "the checkpoint lies on every host before a rank starts",
    "--ray-workers-use-nsight": "vLLM's own ranks take the place of Ray",
}
"""Flags that a recipe does without."""
BACKEND = {
    "ray": "it is ray; vLLM's own ranks, one a host, take its place",
}

WHOLE = {"": 1, "k": 10**3, "K": 1 << 10, "m": 10**6, "M": 1 << 20, "g": 10**9, "G": 1 << 30}
"""What vLLM reads after a whole number."""
SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$")
SECRET_VALUE = re.compile(r"^(hf|sk|ghp|nvapi)[-_][\w-]{16,}$")
HOLE = "reads as a placeholder, which no recipe carries; it is listed under unknown"
FROM_PLAN = ("VLLM_HOST_IP", "MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK")


def document(source: Source, found: Found, name: str, layout: str | None, report: Report) -> dict[str, Any]:
    """The recipe as plain data, in the order of a recipe's fields; what it lacks is refused in the report."""
    return _Recipe(source, found, name, layout, report).made()


class _Recipe:
    """One recipe in the making."""

    def __init__(self, source: Source, found: Found, name: str, layout: str | None, report: Report) -> None:
        self.source, self.given, self.name, self.layout, self.report = source, found, name, layout, report
        self.parallel: dict[str, int] = {"tp": 1}
        self.limits: dict[str, int] = {}
        self.kv: dict[str, int] = {}
        self.api: dict[str, Any] = {"port": ENGINE_PORT}
        self.ports: dict[str, int] = {}
        self.arguments: dict[str, Any] = {}
        self.environment: dict[str, str] = {}
        self.speculation: dict[str, Any] | None = None
        self.draft: dict[str, Any] | None = None
        self.unknown: list[str] = []
        self.revision: str | None = None

    def made(self) -> dict[str, Any]:
        given = self.given
        weights = self._model()
        image = self._image()
        if given.command is not None:
            self._flags(given.command)
            for name, value in given.command.environment.items():
                self._variable(f"command.{name}", name, value)
        for name, value in given.environment.items():
            self._variable(f"env.{name}", name, value)
        ring = self._ring()
        self._choices()
        made: dict[str, Any] = {
            "schema": model.SCHEMA,
            "id": self.name,
            "title": textwrap.shorten(given.title, TITLE, placeholder=" …"),
            "lifecycle": "current",
            "status": {"level": model.UNQUALIFIED, "scope": "Imported, and not run by this project."},
            "model": weights,
            "draft": self.draft,
            "image": image,
            "ring": ring,
            "parallel": self.parallel,
            "transport": {"provider": "nccl", "collectives": "nccl"},
            "limits": {name: self.limits[name] for name in model.Limits.model_fields if name in self.limits},
            "kv": self.kv,
            "speculation": self.speculation,
            "container": {"mounts": self._mounts(weights), **given.container},
            "api": self.api,
            "ports": self.ports,
            "model_argument": given.command.how if given.command and given.command.how != "positional" else None,
            "arguments": self.arguments,
            "environment": self.environment,
            "startup": given.startup,
            "unknown": self.unknown,
            "provenance": f"A recipe of {given.format}, imported.",
            "sources": [self.source.told],
            "notes": given.notes.strip(),
        }
        always = ("arguments", "environment")
        return {name: value for name, value in made.items() if value not in (None, {}, [], "") or name in always}

    # What is served

    def _model(self) -> dict[str, Any]:
        given, command = self.given, self.given.command
        served = command.model if command else None
        if command is not None and served is None:
            self.report.refused("command", "it names no model after vllm serve")
        if given.model is not None and served is not None and given.model != served:
            self.report.refused("model", f"it is {given.model}, and the command serves {served}")
        name = given.model or served or ""
        path = "model" if given.model else "command"
        if name and not _repository(name):
            self.report.refused(path, f"{name} is no repository of a checkpoint for vLLM (owner/name)")
        elif name:
            self.report.mapped(path, "model.repository")
        weights = {"repository": name}
        if (revision := self._revision("model_revision", given.revision)) is not None:
            weights["revision"] = revision
        for flag in command.flags.get("--revision", []) if command else []:
            if (revision := self._revision("command.--revision", flag)) is not None:
                weights.setdefault("revision", revision)
        return weights

    def _revision(self, path: str, given: Any, ours: str = "model.revision") -> str | None:
        if given is None:
            return None
        if re.fullmatch(r"[0-9a-f]{40}", str(given)):
            self.report.mapped(path, ours)
            return str(given)
        self.report.dropped(path, f"{given} is a name that moves; write the commit under {ours}")
        return None

    def _image(self) -> dict[str, Any]:
        given = self.given
        made: dict[str, Any] = {}
        if given.image:
            reference, _at, digest = given.image.partition("@")
            made["reference"] = reference
            if re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
                made["digest"] = digest
            self.report.mapped("container", "image.reference and image.digest" if digest else "image.reference")
        if given.command is not None:
            made["entrypoint"] = given.command.entrypoint
            self.report.mapped("command", "image.entrypoint")
        notes = []
        if given.image_needs:
            self.unknown.append("image.patches")
            notes.append(f"It must hold what these do in its project: {', '.join(given.image_needs)}.")
        if given.image_built:
            notes.append(f"Its project builds it with {' '.join(given.image_built)}.")
        if notes:
            made["notes"] = " ".join(notes)
        return made

    def _mounts(self, weights: dict[str, Any]) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = [{"of": "model", "target": _target(weights["repository"])}]
        if self.draft is not None:
            target = _target(self.draft["repository"])
            made.append({"of": "draft", "target": "/models/draft" if target == made[0]["target"] else target})
        return made

    # How it is divided

    def _ring(self) -> dict[str, Any]:
        if self.given.command is None:
            return {}
        ranks = self.parallel["tp"] * self.parallel.get("pp", 1)
        self._wanted(ranks)
        if not 2 <= ranks <= 8:
            many = "s" if ranks > 1 else ""
            self.report.refused("command", f"it makes {ranks} rank{many}, and a ring has two to eight hosts")
            return {}
        fitting = "pair" if ranks == 2 else f"cycle-{ranks}"
        if self.layout is None:
            self.report.chosen("ring.layout", f"{fitting}, for {ranks} ranks; sparkring_import_layout names another")
        return {"layout": self.layout or fitting}

    def _wanted(self, ranks: int) -> None:
        """Compare how many hosts the file asks for with the ranks that its command makes."""
        for bound, said, less in ((self.given.least, "at least", True), (self.given.most, "at most", False)):
            if bound is None:
                continue
            key, hosts = bound
            if ranks < hosts if less else ranks > hosts:
                self.report.refused(key, f"it wants {said} {hosts} hosts, and the ranks of the command are {ranks}")
            else:
                self.report.mapped(key, "parallel")

    def _choices(self) -> None:
        if "rendezvous" not in self.ports:
            self.ports["rendezvous"] = RENDEZVOUS + (self.api["port"] == RENDEZVOUS)
            self.report.chosen("ports.rendezvous", str(self.ports["rendezvous"]))
        if "name" not in self.api:
            self.api["name"] = self.given.model or (self.given.command.model if self.given.command else None) or ""
            self.report.chosen("api.name", f"{self.api['name']}, as the engine does")
        self.api = {"port": self.api["port"], "name": self.api["name"]}

    # The command line

    def _flags(self, command: Command) -> None:
        for flag, words in command.flags.items():
            path = f"command.{flag}"
            if flag == "--revision":
                continue
            if flag in WITHOUT:
                self.report.dropped(path, WITHOUT[flag])
            elif any(SECRET_VALUE.match(word) for word in words):
                self.report.dropped(path, KEY.partition(";")[0])
            elif flag in PARALLEL:
                self._size(path, flag, words)
            elif flag in LIMITS:
                self._limit(path, flag, words)
            elif flag in SPECIAL:
                SPECIAL[flag](self, path, words)
            else:
                self._argument(path, flag, _value(words))

    def _size(self, path: str, flag: str, words: list[str]) -> None:
        if len(words) != 1 or not words[0].isdecimal() or words[0] == "0":
            self.report.refused(path, f"{' '.join(words) or 'nothing'} is no number of ranks")
            return
        self.parallel[PARALLEL[flag]] = int(words[0])
        self.report.mapped(path, f"parallel.{PARALLEL[flag]}")

    def _limit(self, path: str, flag: str, words: list[str]) -> None:
        section, field, name = LIMITS[flag]
        found = re.fullmatch(r"(\d+)([kKmMgG]?)", words[0]) if len(words) == 1 else None
        if found is None or not int(found[1]):
            self._argument(path, flag, _value(words))
            return
        getattr(self, section)[field] = int(found[1]) * WHOLE[found[2]]
        self.arguments[flag] = f"{{{name}}}"
        self.report.mapped(path, f"{section}.{field}")

    def _data_parallel(self, path: str, words: list[str]) -> None:
        if words == ["1"]:
            self.report.dropped(path, "one copy of the model is what a recipe serves")
        else:
            self.report.refused(path, "a recipe serves one copy of the model, divided over all hosts")

    def _backend(self, path: str, words: list[str]) -> None:
        self.report.dropped(path, BACKEND.get(" ".join(words), RENDERED))

    def _port(self, path: str, words: list[str]) -> None:
        self._number(path, words, self.api, "port", "api.port")

    def _master_port(self, path: str, words: list[str]) -> None:
        self._number(path, words, self.ports, "rendezvous", "ports.rendezvous")

    def _number(self, path: str, words: list[str], into: dict[str, Any], field: str, ours: str) -> None:
        if len(words) == 1 and words[0].isdecimal():
            into[field] = int(words[0])
            self.report.mapped(path, ours)
        else:
            self.report.refused(path, f"{' '.join(words) or 'nothing'} is no port")

    def _served_name(self, path: str, words: list[str]) -> None:
        if not words:
            self.report.refused(path, "it needs a name")
            return
        self.api["name"] = words[0]
        self.report.mapped(path, "api.name")
        for other in words[1:]:
            self.report.dropped(path, f"{other} is a further name, and a recipe serves under one")

    def _speculative(self, path: str, words: list[str]) -> None:
        value = _value(words)
        if not isinstance(value, dict):
            self._argument(path, "--speculative-config", value)
            return
        method, depth = value.get("method"), value.get("num_speculative_tokens")
        ours = "arguments.--speculative-config"
        if isinstance(method, str) and isinstance(depth, int) and 1 <= depth <= 16:
            self.speculation, ours = {"method": method, "depth": depth}, "speculation, arguments"
        value = self._draft(path, value)
        made = _braced(value)
        if self.speculation is not None:
            made["num_speculative_tokens"] = "{depth}"
        if "model" in made:
            made["model"] = "{draft}" if self.draft is not None else "{model}"
        self._set(path, "--speculative-config", made, ours)

    def _draft(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        name = value.get("model")
        if name is None:
            return value
        served = self.given.command.model if self.given.command else None
        if not isinstance(name, str) or not _repository(name):
            self.report.refused(f"{path}.model", f"{name} is no repository of a checkpoint (owner/name)")
        elif name != served:
            self.draft = {"repository": name}
            self.report.mapped(f"{path}.model", "draft.repository")
            if (revision := self._revision(f"{path}.revision", value.get("revision"), "draft.revision")) is not None:
                self.draft["revision"] = revision
        return {key: item for key, item in value.items() if key != "revision"}

    def _argument(self, path: str, flag: str, value: Any) -> None:
        self._set(path, flag, _braced(value), f"arguments.{flag}")

    def _set(self, path: str, flag: str, value: Any, ours: str) -> None:
        """Set an argument, unless a recipe would take what stands in it for a placeholder."""
        if hole := model.PLACEHOLDER.search(json.dumps(value, ensure_ascii=False)):
            self.report.dropped(path, f"{hole[0]} {HOLE}")
            self.unknown.append(f"arguments.{flag}")
            return
        self.arguments[flag] = value
        self.report.mapped(path, ours)

    # Its environment

    def _variable(self, path: str, name: str, value: Any) -> None:
        text = str(value)
        if SECRET.search(name) or SECRET_VALUE.match(text):
            self.report.dropped(path, "it looks like a secret, and secrets do not belong into recipes")
        elif name in FROM_PLAN or (render.of_nccl(name) and name != "LD_PRELOAD"):
            self.report.dropped(path, "it follows from the ring's plan")
        elif name.startswith("RAY_"):
            self.report.dropped(path, "Ray is not used here")
        elif value is None:
            self.report.dropped(path, "it has no value")
        elif isinstance(value, bool):
            self.report.refused(path, f"{text.lower()} is a truth value, of which the text is not known; quote it")
        elif "$" in text:
            self.report.dropped(path, "it names a variable of another machine; write the value")
        elif hole := model.PLACEHOLDER.search(text):
            self.report.dropped(path, f"{hole[0]} {HOLE}")
            self.unknown.append(f"environment.{name}")
        elif name in self.environment:
            self.report.dropped(path, "the command sets it")
        else:
            self.environment[name] = _braced(text)
            self.report.mapped(path, f"environment.{name}")


SPECIAL = {
    "--data-parallel-size": _Recipe._data_parallel,
    "--distributed-executor-backend": _Recipe._backend,
    "--port": _Recipe._port,
    "--master-port": _Recipe._master_port,
    "--served-model-name": _Recipe._served_name,
    "--speculative-config": _Recipe._speculative,
}
"""Flags that go into a field of their own."""


def _repository(name: str) -> bool:
    return re.fullmatch(r"[\w.-]+/[\w.-]+", name) is not None


def _target(repository: str) -> str:
    return "/models/" + repository.rpartition("/")[2]


def _value(words: list[str]) -> Any:
    """The words after a flag: none is true, JSON objects and numbers that keep their text are read as such."""
    if not words:
        return True
    made = [_scalar(word) for word in words]
    return made[0] if len(made) == 1 else made


def _scalar(word: str) -> Any:
    for kind in (int, float):
        try:
            if str(kind(word)) == word and word not in ("nan", "inf", "-inf"):
                return kind(word)
        except ValueError:
            continue
    if word.startswith("{"):
        try:
            return json.loads(word)
        except ValueError:
            return word
    return word


def _braced(value: Any) -> Any:
    """A value whose braces stand for themselves in a recipe."""
    if isinstance(value, dict):
        return {key: _braced(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_braced(item) for item in value]
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value
