"""What is made from the recipes is current, and every recipe file fits the published schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests import schemas
from tests.unit.recipe.examples import RECIPES


@pytest.mark.parametrize("path", schemas.pages(), ids=lambda path: path.name)
def test_pages_are_current(path: Path) -> None:
    """To fix: make schemas."""
    assert path.read_text(encoding="utf-8") == schemas.pages()[path]


SCHEMA = json.loads((RECIPES / "schema.json").read_text(encoding="utf-8"))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yml")), ids=lambda path: path.name)
def test_recipes_fit_the_schema(path: Path) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_a_foreign_field_does_not_fit() -> None:
    content = yaml.safe_load(min(RECIPES.glob("*.yml")).read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError, match="colour"):
        jsonschema.Draft202012Validator(SCHEMA).validate({**content, "colour": "blue"})
