"""Write the JSON Schemas of the documents and the pages made from them (``make schemas``: python -m tests.schemas)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import page
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.report import DoctorReport
from ansible_collections.sparkring.cluster.plugins.plugin_utils.receipt.model import Receipt
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import page as recipe_page
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import reader
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.bindings import Bindings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.survey import Survey

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "schemas"
RECIPES = ROOT / "recipes"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SHAPES: dict[str, Any] = {
    documents.INVENTORY: Inventory,
    documents.SURVEY: Survey,
    documents.BINDINGS: Bindings,
    documents.PLAN: RingPlan,
    documents.HOST_PLAN: HostPlan,
    documents.RECEIPT: Receipt,
    documents.DOCTOR: DoctorReport,
}


def schemas() -> dict[str, str]:
    """Text of every schema by file name."""
    made = {}
    for name, shape in SHAPES.items():
        schema = TypeAdapter(shape).json_schema(by_alias=True)
        if shape in (RingPlan, HostPlan):
            schema = _closed(schema)
            schema["properties"]["schema"] = {"const": name}
        short = name.removeprefix("sparkring.").partition("/")[0]
        text = json.dumps({"$schema": DIALECT, "$id": name, **schema}, indent=2, sort_keys=True)
        made[f"{short}.schema.json"] = text + "\n"
    return made


def recipe_schema() -> str:
    """The schema of a recipe file, for editors: one that extends another states only what it changes."""
    schema = TypeAdapter(Recipe).json_schema(by_alias=True)
    schema["if"] = {"required": ["extends"]}
    schema["then"] = {"required": ["schema", "id"]}
    schema["else"] = {"required": schema.pop("required")}
    variables = schema["properties"]["environment"]["anyOf"][0]["patternProperties"]
    for pattern, shape in variables.items():
        variables[pattern] = {"anyOf": [shape, {"type": "null"}]}  # takes a variable of the base away
    return json.dumps({"$schema": DIALECT, "$id": documents.RECIPE, **schema}, indent=2, sort_keys=True) + "\n"


def pages() -> dict[Path, str]:
    """Text of every page that is made from the library, by path."""
    return {
        ROOT / "docs" / "doctor.md": page.text(),
        ROOT / "docs" / "recipes.md": recipe_page.text(reader.read_all(RECIPES)),
        RECIPES / "schema.json": recipe_schema(),
    }


def _closed(value: Any) -> Any:
    """Contract dataclasses take no unknown field; pydantic leaves that open."""
    if isinstance(value, dict):
        closed = {key: _closed(item) for key, item in value.items()}
        if closed.get("type") == "object" and "properties" in closed:
            closed["additionalProperties"] = False
        return closed
    return [_closed(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
