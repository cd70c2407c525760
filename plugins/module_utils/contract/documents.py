"""The documents that travel between the parts: their schema names, bytes and digests."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from typing import Any

INVENTORY = "sparkring.inventory/1"
SURVEY = "sparkring.survey/1"
BINDINGS = "sparkring.bindings/1"
PLAN = "sparkring.plan/1"
HOST_PLAN = "sparkring.host-plan/1"
"""One host's section of the plan, as it travels to that host."""
RECEIPT = "sparkring.receipt/1"
DOCTOR = "sparkring.doctor/1"
RECIPE = "sparkring.recipe/1"
RANK_UNIT = "sparkring.unit/1"


def to_text(document: Any) -> str:
    """The one text form of a document: sorted keys, two spaces, a final newline."""
    return json.dumps(to_plain(document), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def digest(document: Any) -> str:
    """``sha256:<hex>`` over the document as JSON with sorted keys and no space."""
    text = json.dumps(to_plain(document), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def to_plain(value: Any) -> Any:
    """Dataclasses, tuples and mappings as plain JSON values; unset optional fields stay null.

    Subclasses of the plain types, such as the tagged values that Ansible hands to plugins, become the plain type.
    """
    if type(value) in _PLAIN:
        return value
    names = _field_names(type(value))
    if names is not None:
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


_PLAIN = frozenset((str, int, float, bool, type(None)))
_FIELD_NAMES: dict[type, tuple[str, ...] | None] = {}


def _field_names(kind: type) -> tuple[str, ...] | None:
    """Field names of a dataclass, None for any other type; kept, since every value of a document asks."""
    if kind not in _FIELD_NAMES:
        known = dataclasses.is_dataclass(kind)
        _FIELD_NAMES[kind] = tuple(field.name for field in dataclasses.fields(kind)) if known else None
    return _FIELD_NAMES[kind]


def from_plain(shape: Any, value: Any, where: str = "") -> Any:
    """Build the dataclass ``shape`` from plain JSON values.

    Raises ValueError that names the field path when a field is missing, unknown or of the
    wrong kind.
    """
    origin = typing.get_origin(shape)
    if origin is typing.Union:
        inner = [item for item in typing.get_args(shape) if item is not type(None)]
        return None if value is None else from_plain(inner[0], value, where)
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise ValueError(f"{where or 'document'}: a list is needed")
        item_shape = typing.get_args(shape)[0]
        items = [from_plain(item_shape, item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(items) if origin is tuple else items
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where or 'document'}: a mapping is needed")
        item_shape = typing.get_args(shape)[1]
        return {key: from_plain(item_shape, item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(shape):
        return _dataclass_from_plain(shape, value, where)
    if shape is Any:
        return value
    if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        raise ValueError(f"{where or 'document'}: {shape.__name__} is needed, not {type(value).__name__}")
    return value


def _dataclass_from_plain(shape: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'document'}: a mapping is needed")
    hints = typing.get_type_hints(shape)
    fields = {field.name: field for field in dataclasses.fields(shape)}
    prefix = where + "." if where else ""
    for name in value:
        if name not in fields:
            raise ValueError(f"{prefix}{name}: unknown field")
    arguments = {}
    for name, field in fields.items():
        if name in value:
            arguments[name] = from_plain(hints[name], value[name], prefix + name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{prefix}{name}: missing")
    return shape(**arguments)
