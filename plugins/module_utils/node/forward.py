"""Forward rules: which chain of the host's firewall takes them, and which are ours."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from ..contract import marks
from .host import Host

DOCKER_CHAIN = "DOCKER-USER"
PLAIN_CHAIN = "FORWARD"


@dataclass(frozen=True)
class Forward:
    """The forwarding part of the firewall. ``rules`` are the lines of the two chains."""

    available: bool
    chain: str
    policy: str
    rules: list[str]

    @property
    def docker_user(self) -> bool:
        """Whether Docker's chain for the operator's rules exists."""
        return self.chain == DOCKER_CHAIN


def none() -> Forward:
    """A host without a firewall that can be read."""
    return Forward(False, PLAIN_CHAIN, "", [])


def observe(host: Host) -> Forward:
    """Read the filter table; a host without iptables has no forward rules of ours."""
    done = host.runner.execute(["iptables", "-w", "-S"], None, 30)
    if done.status != 0:
        return none()
    lines = done.output.splitlines()
    policy = next((line.split()[2] for line in lines if line.startswith(f"-P {PLAIN_CHAIN} ")), "")
    chain = DOCKER_CHAIN if f"-N {DOCKER_CHAIN}" in lines else PLAIN_CHAIN
    kept = (f"-A {PLAIN_CHAIN} ", f"-A {DOCKER_CHAIN} ")
    return Forward(True, chain, policy, [line for line in lines if line.startswith(kept)])


def rule(line: str) -> dict[str, Any] | None:
    """Fields of a rule that carries our comment; None for any other. ``extra`` holds odd words."""
    words = shlex.split(line)
    if marks.RULE_COMMENT not in words:
        return None
    body: dict[str, Any] = {"chain": words[1], "ingress": "", "egress": "", "extra": []}
    expected = ["-m", "comment", "--comment", marks.RULE_COMMENT, "-j", "ACCEPT"]
    rest = words[2:]
    for flag, name in (("-i", "ingress"), ("-o", "egress")):
        if flag in rest[:-1]:
            position = rest.index(flag)
            body[name] = rest[position + 1]
            del rest[position : position + 2]
    body["extra"] = [] if rest == expected else rest
    return body


def blocker(seen: Forward, body: dict[str, Any]) -> str | None:
    """The rule before ours in its chain that drops what ours accepts; None where there is none."""
    for line in seen.rules:
        words = shlex.split(line)
        if words[1] != body["chain"]:
            continue
        if rule(line) == body:
            return None
        target = words[words.index("-j") + 1] if "-j" in words[:-1] else ""
        sides = [
            flag not in words or words[words.index(flag) + 1] == body[name]
            for flag, name in (("-i", "ingress"), ("-o", "egress"))
        ]
        if target in ("DROP", "REJECT") and all(sides):
            return line
    return None


def _match(body: dict[str, Any]) -> list[str]:
    words = []
    if body["ingress"]:
        words += ["-i", body["ingress"]]
    if body["egress"]:
        words += ["-o", body["egress"]]
    return words + (body["extra"] or ["-m", "comment", "--comment", marks.RULE_COMMENT, "-j", "ACCEPT"])


def lay(host: Host, wanted: list[dict[str, Any]]) -> None:
    """Insert rules at the head of their chain, so that they precede Docker's drops."""
    for body in wanted:
        host.runner.run(["iptables", "-w", "-I", body["chain"], "1", *_match(body)])


def take(host: Host, gone: list[dict[str, Any]]) -> None:
    """Delete rules of ours."""
    for body in gone:
        host.runner.run(["iptables", "-w", "-D", body["chain"], *_match(body)])
