"""Give each recipe's command line to the real argument parser; runs in the environment of the engine.

Reads command lines by name as JSON. What an image added to vLLM, and stock vLLM cannot know, is named here and left
out of the line first.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

OF_AN_IMAGE = {
    "--gdn-decode-kernel",
    "--kda-prefill-backend",
    "--max-parallel-prefills",
    "--quantization-config",
    "--recurrent-checkpoint-policy",
}
"""Flags, or values of flags, that only the recipes' images know; each has one value."""


def stock(words: list[str]) -> list[str]:
    """The line without `serve` and without what only an image knows."""
    kept = words[1:] if words[0] == "serve" else words
    return [word for before, word in zip(["", *kept], kept, strict=False) if not {before, word} & OF_AN_IMAGE]


def refusal(words: list[str]) -> str:
    """What the parser says against a line; empty where it takes it."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            make_arg_parser(FlexibleArgumentParser(prog="vllm serve")).parse_args(stock(words))
    except SystemExit:
        return said.getvalue().strip()[-800:]
    return ""


if __name__ == "__main__":
    lines = json.load(sys.stdin)
    refused = {name: why for name, words in lines.items() if (why := refusal(words))}
    for name, why in refused.items():
        print(f"{name}: {why}")
    print(f"the parser takes {len(lines) - len(refused)} of {len(lines)} command lines")
    sys.exit(1 if refused else 0)
