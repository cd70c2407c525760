"""One foreign file made into a recipe file: read, carried over, checked, compared with what stands there."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import model, reader
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import layouts

from . import carry, spark_vllm_docker, sparkrun
from .found import Found, Source
from .report import Report

FORMATS = {"1": spark_vllm_docker.read, "2": sparkrun.read}
NAMED = {"1": f"{spark_vllm_docker.NAME}, recipe_version 1", "2": f"{sparkrun.NAME}, recipe_version 2"}
WIDTH = 110


class CommunityError(ValueError):
    """One sentence: why nothing can be imported, before any part is judged."""


@dataclass(frozen=True)
class Imported:
    """``text`` is None where a part was refused; ``before`` is None where no file stands yet."""

    path: Path
    text: str | None
    before: str | None
    report: Report
    verdict: str

    @property
    def lines(self) -> list[str]:
        """What became of each part, then what it comes to."""
        return [*(line.text for line in self.report.ordered), *([] if self.report.refusals else [self.verdict])]

    def documents(self) -> list[dict[str, str]]:
        """The report as data."""
        return [asdict(line) for line in self.report.ordered]

    @property
    def changed(self) -> bool:
        """Whether a file is to be written."""
        return self.text is not None and self.before is None

    def diff(self) -> dict[str, str]:
        """What is written, as Ansible shows it."""
        shown = str(self.path)
        after = self.text if self.text is not None else self.before
        return {"before": self.before or "", "after": after or "", "before_header": shown, "after_header": shown}

    def write(self) -> None:
        """Write the file whole."""
        if not self.changed or self.text is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.write_text(self.text, encoding="utf-8")
        os.replace(fresh, self.path)


def run(source: Path, to: Path | None, recipes: Path, layout: str | None = None) -> Imported:
    """Import a file; raises CommunityError or RecipeError where it is no foreign recipe or its place is taken."""
    content, lines = reader.content_of(source)
    path = to or recipes / (slug(source) + reader.SUFFIX)
    name = path.name.removesuffix(reader.SUFFIX)
    if not path.name.endswith(reader.SUFFIX) or not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", name):
        raise CommunityError(f"{path} cannot hold a recipe: name a file of small letters, digits, dots and dashes.yml.")
    if layout is not None and layouts.layout(layout) is None:
        raise CommunityError(f"The layout {layout} is unknown; use {layouts.KNOWN}.")
    version = _version(source, content)
    report = Report()
    given = Source(source, content, lines)
    found = FORMATS[version](given, report)
    made = _checked(carry.document(given, found, name, layout, report), report)
    text = None if report.refusals else _text(made, found, source)
    before = path.read_text(encoding="utf-8") if path.is_file() else None
    if text is not None and before not in (None, text):
        raise CommunityError(
            f"{path} exists and is another recipe: name another with sparkring_import_to, or remove it."
        )
    return Imported(path, text, before, report, _verdict(source, path, made, report))


def slug(source: Path) -> str:
    """A recipe's id after the name of a file."""
    return re.sub(r"[^a-z0-9.]+", "-", source.stem.lower()).strip("-.")[:63] or "imported"


def _version(source: Path, content: dict[str, Any]) -> str:
    if str(content.get("schema", "")).startswith("sparkring.recipe/"):
        raise CommunityError(f"{source} is a SparkRing recipe already: copy it to your recipes.")
    said = content.get("recipe_version")
    if said is None:
        older = {"build_args", "mods", "name"} & content.keys() and not {"runtime", "metadata"} & content.keys()
        return "1" if older else "2"
    version = str(said)
    if version not in FORMATS:
        raise CommunityError(f"{source}: recipe_version {version} is unknown; the known ones are 1 and 2.")
    return version


def _checked(made: dict[str, Any], report: Report) -> dict[str, Any]:
    """The recipe as our own model takes it; what it refuses is refused here."""
    if report.refusals:
        return made
    try:
        model.Recipe.model_validate(made)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = first["msg"].removeprefix("Value error, ")
        report.refused(".".join(str(part) for part in first["loc"]) or "recipe", f"SparkRing's recipe says: {said}")
    return made


def _verdict(source: Path, path: Path, made: dict[str, Any], report: Report) -> str:
    if (count := len(report.refusals)) > 0:
        return f"{source.name}: {count} part{'s' * (count > 1)} cannot be carried, so nothing is written."
    lacking = model.Recipe.model_validate(made).lacking
    if lacking:
        return f"{path} is incomplete and cannot be served; unknown: {', '.join(lacking)}."
    return f"{path} is complete; sparkring recipes says whether a ring can serve it."


class _Dumper(yaml.SafeDumper):
    """YAML with indented lists, as the recipes have it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _text(made: dict[str, Any], found: Found, source: Path) -> str:
    head = f"---\n# Imported from {source.name}, a recipe of {found.format}. What was unknown there is absent here.\n"
    return head + yaml.dump(made, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
