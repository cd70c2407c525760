"""The published schemas are current, and the documents fit them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from tests import schemas
from tests.rings import LAYOUTS, make_bindings, make_inventory, make_survey


def fits(name: str, document: Any) -> None:
    schema = json.loads((schemas.FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(documents.to_plain(document))


def test_schemas_are_current() -> None:
    """To fix: make schemas."""
    standing = {path.name: path.read_text(encoding="utf-8") for path in schemas.FOLDER.glob("*.json")}
    assert standing == schemas.schemas()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_documents_fit(layout: str) -> None:
    given = make_inventory(layout)
    bound = make_bindings(given)
    plan = planner.plan(given, bound)
    fits("inventory", given.model_dump(by_alias=True))
    fits("bindings", bound.model_dump(by_alias=True))
    fits("plan", plan)
    for host in plan.hosts.values():
        fits("host-plan", host)
    fits("survey", make_survey(0))


def test_a_foreign_field_does_not_fit() -> None:
    given = make_inventory("pair")
    plan = documents.to_plain(planner.plan(given, None))
    plan["hosts"]["spark0"]["colour"] = "blue"
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        fits("plan", plan)
