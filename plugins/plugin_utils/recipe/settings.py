"""What an operator changes in a recipe, and what only they can know: where things lie on their hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl import libraries
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import (
    Bytes,
    Digest,
    Part,
    Port,
    Positive,
    Recipe,
)

VARIABLE = "sparkring_settings"
CACHE_FLAG = "--kv-transfer-config"
"""The argument that brings the context cache in; without the cache it goes."""

PLACES: dict[str, tuple[str, ...]] = {
    "context": ("limits", "context"),
    "sequences": ("limits", "sequences"),
    "batched_tokens": ("limits", "batched_tokens"),
    "kv_bytes": ("kv", "bytes_per_rank"),
    "dcp": ("parallel", "dcp"),
    "interleave": ("parallel", "interleave"),
    "gather": ("parallel", "gather"),
    "captures": ("captures",),
}
"""Settings by the field of the recipe that they change. A changed one takes the recipe's status away."""

AbsolutePath = Annotated[str, Field(pattern=r"^/[^:,\n]*$", description="Absolute path without colon or comma")]


class SettingsError(ValueError):
    """One sentence: which setting is wrong, and why."""


class OtherImage(Part):
    """An image other than the recipe's."""

    reference: str | None = None
    digest: Digest | None = None
    id: Digest | None = None
    entrypoint: list[str] | None = None


class Folders(Part):
    """Where things lie on a host; ``{host}`` in a path is the host's name."""

    model: AbsolutePath | None = None
    draft: AbsolutePath | None = None
    cache: AbsolutePath | None = None
    blobs: AbsolutePath | None = None
    logs: AbsolutePath | None = None
    contract: AbsolutePath | None = None
    weights_cache: AbsolutePath | None = Field(default=None, alias="weights-cache")


class CacheSettings(Part):
    """The context cache: ``enabled: false`` takes it out, the others are fields of the recipe's ``sparkcache``."""

    enabled: bool = True
    access_mode: Literal["read-write", "restore-only", "store-only"] | None = None
    max_bytes: Bytes | None = None
    low_watermark_bytes: Bytes | None = None
    max_span_tokens: Positive | None = None
    min_span_tokens: Positive | None = None


class Settings(Part):
    """Everything an operator may say about one deployment. Nothing said is the recipe as it is."""

    deployment: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")] | None = Field(
        default=None, description="Name of the deployment; without it, the recipe's id"
    )
    engine: Literal["container", "venv"] | None = Field(
        default=None, description="How the engine runs; without it, container where the recipe names an image"
    )
    venv: AbsolutePath | None = Field(default=None, description="The environment that holds vLLM on every host")
    nccl: str | dict[str, Any] | None = Field(
        default=None, description="engine, or a library of sparkring explain, in place of the recipe's NCCL"
    )
    context: Positive | None = None
    sequences: Positive | None = None
    batched_tokens: Positive | None = None
    kv_bytes: Positive | None = None
    dcp: Literal[1, 2, 4, 8] | None = None
    interleave: Literal["auto"] | int | None = None
    gather: Literal["auto"] | bool | None = None
    captures: Literal["auto"] | list[Positive] | None = None
    sparkcache: CacheSettings | None = None
    image: OtherImage | None = None
    arguments: dict[str, Any] = Field(default={}, description="Flags to set; null removes one")
    environment: dict[str, str | None] = Field(default={}, description="Variables to set; null removes one")
    port: Port | None = None
    rendezvous_port: Port | None = None
    folders: Folders = Folders()
    accept_licences: list[str] = Field(default=[], description="Licences whose restrictions the operator accepts")


def read(given: Mapping[str, Any] | None) -> Settings:
    """The settings in a mapping; raises SettingsError for the first that is wrong."""
    try:
        return Settings.model_validate(given or {})
    except ValidationError as error:
        raise SettingsError(_sentence(error)) from error


def applied(recipe: Recipe, settings: Settings) -> Recipe:
    """The recipe with the settings in it, checked again as a whole; raises SettingsError."""
    plain = recipe.model_dump(by_alias=True)
    for name, value in settings.model_dump(exclude_none=True).items():
        if name in PLACES:
            _put(plain, PLACES[name], value)
    _ports(plain, settings)
    if settings.image is not None:
        plain["image"] |= settings.image.model_dump(exclude_none=True)
    for section in ("arguments", "environment"):
        changes: dict[str, Any] = getattr(settings, section)
        if changes and plain[section] is None:
            raise SettingsError(f"{VARIABLE}.{section}: recipe {recipe.id} has none to change; choose another recipe.")
        for name, value in changes.items():
            if value is None:
                plain[section].pop(name, None)
            else:
                plain[section][name] = value
    _cache(plain, recipe, settings)
    try:
        return Recipe.model_validate(plain)
    except ValidationError as error:
        raise SettingsError(_sentence(error)) from error


def changed(recipe: Recipe, settings: Settings) -> list[str]:
    """The settings that make this another configuration than the recipe's, by name, sorted.

    Names, addresses, ports and folders are not among them.
    """
    now = applied(recipe, settings)
    found = {name for name, place in PLACES.items() if _get(recipe, place) != _get(now, place)}
    if settings.sparkcache is not None and not settings.sparkcache.enabled:
        found |= {"sparkcache"} if recipe.sparkcache is not None else set()
    elif recipe.sparkcache is not None and now.sparkcache is not None:
        before, after = recipe.sparkcache.model_dump(), now.sparkcache.model_dump()
        found |= {f"sparkcache.{name}" for name, value in after.items() if before[name] != value}
    for section in ("arguments", "environment"):
        old, new = getattr(recipe, section) or {}, getattr(now, section) or {}
        asked: dict[str, Any] = getattr(settings, section)
        found |= {f"{section}.{name}" for name in asked if old.get(name) != new.get(name)}
    fields = ("reference", "digest", "id", "entrypoint")
    found |= {f"image.{name}" for name in fields if getattr(recipe.image, name) != getattr(now.image, name)}
    if settings.nccl is not None:
        found.add("nccl")
    if settings.engine == "venv" and recipe.image.digest is not None:
        found.add("engine")
    return sorted(found)


def library(settings: Settings) -> libraries.Library | None:
    """The NCCL library that was asked for, None for the engine's own; raises SettingsError where none is known."""
    if settings.nccl in (None, "engine"):
        return None
    try:
        return libraries.find(settings.nccl)
    except libraries.LibraryError as error:
        raise SettingsError(f"{VARIABLE}.nccl: {str(error).partition(': ')[2]}.") from error


def _put(plain: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for part in place[:-1]:
        plain = plain[part]
    plain[place[-1]] = value


def _get(recipe: Recipe, place: tuple[str, ...]) -> Any:
    value: Any = recipe
    for part in place:
        value = getattr(value, part)
    return value


def _ports(plain: dict[str, Any], settings: Settings) -> None:
    if settings.port is not None:
        if plain["api"] is None:
            raise SettingsError(f"{VARIABLE}.port: recipe {plain['id']} has no API; choose another recipe.")
        plain["api"]["port"] = settings.port
    if settings.rendezvous_port is not None:
        plain["ports"]["rendezvous"] = settings.rendezvous_port


def _cache(plain: dict[str, Any], recipe: Recipe, settings: Settings) -> None:
    if settings.sparkcache is None:
        return
    if not settings.sparkcache.enabled:
        plain["sparkcache"] = None
        (plain["arguments"] or {}).pop(CACHE_FLAG, None)
        return
    if recipe.sparkcache is None:
        words = "its recipe does not use the context cache"
        if recipe.sparkcache_supported:
            words += "; serve the recipe that does, its id ends with sparkcache"
        raise SettingsError(f"{VARIABLE}.sparkcache: {words}.")
    plain["sparkcache"] |= settings.sparkcache.model_dump(exclude_none=True, exclude={"enabled"})


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join([VARIABLE, *(str(part) for part in first["loc"])])
    words = first["msg"].removeprefix("Value error, ")
    return f"{place}: {words[0].lower() + words[1:]}."
