"""Relay filters and software markers as tc knows them: commands out, JSON back in.

Two facts of iproute2 shape the reading (facts: fabric 5.3): each preference also prints a summary
entry without options, and a pedit key's mask shows either the bits that are kept or the bits that
are set, depending on the version.
"""

from __future__ import annotations

from typing import Any

from ..contract import marks, tags

MAC_BYTES = tuple(range(6))
TYPE_BYTES = (12, 13)
ROCE_PORT = 4791


def protocol_number(text: Any) -> int | None:
    """EtherType of a filter as tc prints it: ``ip``, ``[34997]``, ``0x88b5``."""
    if isinstance(text, int):
        return text
    if text == "ip":
        return tags.IPV4
    try:
        return int(str(text).strip("[]"), 0)
    except ValueError:
        return None


def entries(printed: Any) -> list[dict[str, Any]]:
    """Real filters of a ``tc -j filter show`` answer; the summary entries are left out.

    A flower filter's handle lies in its options, other classifiers' may be missing: an entry of
    another classifier with a preference counts even without options.
    """
    result = []
    for entry in printed or []:
        if isinstance(entry, dict) and ("options" in entry or entry.get("kind") != "flower"):
            result.append(entry)
    return result


def ethernet_bytes(keys: list[dict[str, Any]]) -> dict[int, int]:
    """Header bytes that pedit keys set, by offset. Empty where no reading makes sense.

    The keep-mask reading is tried first; a key that sets no byte under it belongs to the other.
    """
    kept = _bytes(keys, keep=True)
    if set(kept) <= set(MAC_BYTES + TYPE_BYTES) and kept:
        return kept
    written = _bytes(keys, keep=False)
    return written if set(written) <= set(MAC_BYTES + TYPE_BYTES) else {}


def _bytes(keys: list[dict[str, Any]], keep: bool) -> dict[int, int]:
    result: dict[int, int] = {}
    for key in keys:
        if key.get("htype") != "eth" or key.get("cmd", "set") not in ("set", "val"):
            return {}
        value, mask, offset = _hexadecimal(key["val"]), _hexadecimal(key["mask"]), int(key["offset"])
        touched = False
        for index in range(4):
            shift = 24 - 8 * index
            bits = (mask >> shift) & 0xFF
            if bits not in (0, 0xFF):
                return {}
            if (bits == 0) == keep:
                result[offset + index] = (value >> shift) & 0xFF
                touched = True
        if not touched:
            return {}
    return result


def _hexadecimal(value: Any) -> int:
    return value if isinstance(value, int) else int(str(value), 16)


def mac_of(header: dict[int, int]) -> str:
    """Destination MAC that the bytes write; empty where they write none or only a part."""
    if not all(offset in header for offset in MAC_BYTES):
        return ""
    return ":".join(f"{header[offset]:02x}" for offset in MAC_BYTES)


def type_of(header: dict[int, int]) -> str:
    """EtherType that the bytes write; empty where they write none."""
    if not all(offset in header for offset in TYPE_BYTES):
        return ""
    return tags.hexadecimal(header[12] << 8 | header[13])


def written_header(actions: list[dict[str, Any]]) -> dict[int, int]:
    """Header bytes that all pedit actions together set; empty where one is not understood."""
    header: dict[int, int] = {}
    for action in actions:
        if action.get("kind") == "pedit":
            part = ethernet_bytes(action.get("keys", []))
            if not part:
                return {}
            header.update(part)
    return header


def unexpected_keys(entry: dict[str, Any], expected: list[str]) -> list[str]:
    """Match keys besides the expected ones, sorted; EtherType repeats the protocol."""
    found = entry["options"].get("keys", {})
    extra = [key for key in found if key not in expected and key != "eth_type"]
    if entry.get("chain"):
        extra.append("chain")
    return sorted(extra)


def relay_filter(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Fields of a filter that has the shape of a relay filter of ours; None for any other.

    Shape: flower on one of our tags, rewriting the header, then redirecting. Everything else about
    it is compared, not presumed: odd match keys, actions or flags make it differ from the plan.
    """
    number = protocol_number(entry.get("protocol"))
    options = entry.get("options", {})
    if entry.get("kind") != "flower" or number is None:
        return None
    if not tags.TAG_BASE < number <= tags.TAG_BASE + tags.MAX_RELAYS + 1:
        return None
    actions = options.get("actions", [])
    kinds = [action.get("kind") for action in actions]
    if "pedit" not in kinds or "mirred" not in kinds:
        return None
    last = actions[-1]
    header = written_header(actions)
    redirects = last.get("mirred_action") == "redirect" and last.get("direction") == "egress"
    plain = kinds[:-1] == ["pedit"] * (len(kinds) - 1) and redirects
    skip_sw = bool(options.get("skip_sw"))
    return {
        "tag": tags.hexadecimal(number),
        "preference": entry.get("pref"),
        "handle": options.get("handle", entry.get("handle")),
        "set_mac": mac_of(header),
        "set_tag": type_of(header),
        "egress": last.get("to_dev", ""),
        "skip_sw": skip_sw,
        "in_hw": bool(options.get("in_hw")) if skip_sw else None,
        "extra": unexpected_keys(entry, []) + ([] if plain else ["actions"]),
    }


def marker_rule(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Fields of an egress filter that has the shape of a software marker; None for any other."""
    options = entry.get("options", {})
    keys = options.get("keys", {})
    actions = options.get("actions", [])
    if entry.get("kind") != "flower" or protocol_number(entry.get("protocol")) != tags.IPV4:
        return None
    match = "dst_ip" if "dst_ip" in keys else "src_port"
    if match not in keys or not actions or any(action.get("kind") != "pedit" for action in actions):
        return None
    header = written_header(actions)
    extra = unexpected_keys(entry, [match, "ip_proto", "dst_port"])
    if keys.get("ip_proto") != "udp" or str(keys.get("dst_port")) != str(ROCE_PORT) or mac_of(header):
        extra.append("match")
    return {
        "destination": str(keys[match]).split("/32")[0]
        if match == "dst_ip"
        else f"{marks.SOURCE_PORT_MATCH}{keys[match]}",
        "tag": type_of(header),
        "handle": options.get("handle", entry.get("handle")),
        "extra": extra,
    }


def add_filter(body: dict[str, Any]) -> str:
    """The line that lays a relay filter."""
    words = ["filter", "add", "dev", body["netdev"], "ingress", "protocol", body["tag"]]
    words += ["pref", str(body["preference"]), "handle", str(body["handle"]), "flower"]
    if body["skip_sw"]:
        words.append("skip_sw")
    words += ["action", "pedit", "ex", "munge", "eth", "dst", "set", body["set_mac"], "pipe"]
    words += ["action", "pedit", "ex", "munge", "eth", "type", "set", body["set_tag"], "pipe"]
    words += ["action", "mirred", "egress", "redirect", "dev", body["egress"]]
    return " ".join(words)


def delete_filter(body: dict[str, Any]) -> str:
    """The line that takes a relay filter away."""
    words = ["filter", "del", "dev", body["netdev"], "ingress", "protocol", body["tag"]]
    return " ".join([*words, "pref", str(body["preference"]), "handle", str(body["handle"]), "flower"])


def marker_preference(destination: str) -> int:
    """Preference of the rule for a destination, or for a source port in its place."""
    by_port = destination.startswith(marks.SOURCE_PORT_MATCH)
    return marks.SOURCE_PORT_PREFERENCE if by_port else marks.EGRESS_PREFERENCE


def add_marker(netdev: str, handle: int, destination: str, tag: str) -> str:
    """The line that lays one software marker rule."""
    match = ["dst_ip", destination]
    if destination.startswith(marks.SOURCE_PORT_MATCH):
        match = ["src_port", destination[len(marks.SOURCE_PORT_MATCH) :]]
    words = ["filter", "add", "dev", netdev, "egress", "protocol", "ip", "pref", str(marker_preference(destination))]
    words += ["handle", str(handle), "flower", "ip_proto", "udp", *match]
    words += ["dst_port", str(ROCE_PORT), "action", "pedit", "ex", "munge", "eth", "type", "set", tag]
    return " ".join(words)


def delete_marker(netdev: str, destination: str, handle: int) -> str:
    """The line that takes one software marker rule away."""
    preference = str(marker_preference(destination))
    words = ["filter", "del", "dev", netdev, "egress", "protocol", "ip", "pref", preference]
    return " ".join([*words, "handle", str(handle), "flower"])
