"""The names in braces that arguments and environment of a recipe may carry, and how they are filled in.

``{context}`` alone keeps the value's type; within a longer text it becomes text. A brace is written as ``{{``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RECIPE = {
    "context": "limits.context",
    "sequences": "limits.sequences",
    "batched_tokens": "limits.batched_tokens",
    "kv_bytes": "kv.bytes_per_rank",
    "tp": "parallel.tp",
    "dcp": "parallel.dcp",
    "interleave": "parallel.interleave, resolved",
    "gather": "parallel.gather, resolved: 1 or 0",
    "captures": "the batch rows that CUDA graphs are made for",
    "captures_max": "the largest of them",
    "depth": "speculation.depth",
    "model": "where the process sees the model",
    "draft": "where the process sees the draft",
    "name": "api.name",
    "port": "api.port",
    "rendezvous_port": "ports.rendezvous",
    "liveness_port": "ports.liveness",
    "namespace": "namespace, or a name of the image and the recipe, so that no other recipe's cache is taken",
    "sparkcache": "1 where the context cache is on, else 0",
    "sparkcache_publication_schema": "sparkcache.publication_schema, and so on",
    "sparkcache_access_mode": "",
    "sparkcache_max_bytes": "",
    "sparkcache_low_watermark_bytes": "",
    "sparkcache_ttl_seconds": "",
    "sparkcache_min_span_tokens": "",
    "sparkcache_max_span_tokens": "",
    "sparkcache_lease_seconds": "",
    "sparkcache_load_threads": "",
    "sparkcache_pending_restores": "",
    "sparkcache_io_workers": "",
    "sparkcache_arena_bytes": "",
    "sparkcache_capture_slot_bytes": "",
    "sparkcache_capture_slots": "",
    "sparkcache_buffer_budget_bytes": "",
}
"""Equal on all ranks."""

RANK = {
    "rank": "the rank's number",
    "headless": "1 on ranks without the API, empty on the head",
    "address": "the rank's address on the rendezvous network",
    "head": "the head's address on the rendezvous network",
    "interface": "the rank's network device there",
    "hca": "its first RDMA device",
    "hcas": "its primary RDMA devices, p0 before p1",
    "hcas_by_domain": "both functions of its first port",
    "hcas_all": "all its RDMA devices: the primary ones, then the secondary ones",
    "hcas_exact": "all of them, each as device:1",
    "gid": "the RoCE v2 GID index of its RDMA devices, found on the host at each start",
    "peer_hcas": "which of its devices reach each rank, as rank=device/device",
    "peer0": "address of the rank that is its number XOR 1, on the cable between them",
    "peer1": "address of the rank that is its number XOR 3, on the cable between them",
    "device0": "the RDMA device that faces peer0",
    "device1": "the RDMA device that faces peer1",
    "second_peer0": "as peer0, on the secondary functions",
    "second_peer1": "as peer1, on the secondary functions",
    "second_device0": "as device0, on the secondary functions",
    "second_device1": "as device1, on the secondary functions",
    "gid0": "GID index of device0",
    "gid1": "GID index of device1",
    "second_gid0": "GID index of second_device0",
    "second_gid1": "GID index of second_device1",
}
"""What may differ from rank to rank; nothing else does."""

_NAME = re.compile(r"\{\{|\}\}|\{([a-z0-9_]*)\}")


def refuse_unknown(place: str, value: Any) -> None:
    """Raise ValueError where a value holds a name that is not listed here."""
    for name in names(value):
        if name not in RECIPE and name not in RANK:
            raise ValueError(f"{place}: {{{name}}} is not a name that is filled in; see docs/recipes.md")


def names(value: Any) -> set[str]:
    """The names in braces within a value, however deep."""
    if isinstance(value, Mapping):
        return {name for item in value.values() for name in names(item)}
    if isinstance(value, list):
        return {name for item in value for name in names(item)}
    return {found[1] for found in _NAME.finditer(value) if found[1] is not None} if isinstance(value, str) else set()


def fill(value: Any, given: Mapping[str, Any]) -> Any:
    """The value with its names filled in; raises KeyError for a name that has no value."""
    if isinstance(value, Mapping):
        return {key: fill(item, given) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, given) for item in value]
    if not isinstance(value, str):
        return value
    if (alone := _NAME.fullmatch(value)) and alone[1] is not None:
        return given[alone[1]]
    return _NAME.sub(lambda found: found[0][0] if found[1] is None else str(given[found[1]]), value)
