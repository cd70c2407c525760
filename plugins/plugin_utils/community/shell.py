"""A command template of a foreign recipe: its names filled in, then split into words as a shell would.

Nothing is ever run or expanded. What only a shell can do is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

PUNCTUATION = "();<>|&\n"
DEPTH = 10
"""How deep a default may name others."""
LONGEST = 100_000
"""Characters of a command; no system would start a longer one."""

_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")
_FORMAT = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]")


class ShellError(ValueError):
    """Half a sentence: what about the command cannot be carried."""


def fill_doubled(text: str, values: Mapping[str, str]) -> str:
    """Names filled in once, literal braces doubled: as spark-vllm-docker writes its templates."""

    def one(found: re.Match[str]) -> str:
        word = found[0]
        if word in ("{{", "}}"):
            return word[0]
        name = _NAME.fullmatch(word)
        if name is None:
            raise ShellError(f"{word} is no name of its defaults; double the braces that are meant as such")
        if name[1] not in values:
            raise ShellError(f"{word} is left open; give it a value under defaults")
        return values[name[1]]

    return _FORMAT.sub(one, text)


def fill_plain(text: str, values: Mapping[str, str]) -> str:
    """Names filled in again and again, literal braces plain: as sparkrun writes its templates.

    Where the text has doubled braces, they are its older spelling of literal ones.
    """
    made = text
    for _ in range(DEPTH):
        before, made = made, _NAME.sub(lambda found: values.get(found[1], found[0]), made)
        if made == before:
            break
        if len(made) > LONGEST:
            raise ShellError("its defaults name each other, and it grows without end")
    if left := _NAME.search(made):
        raise ShellError(f"{left[0]} is left open; give it a value under defaults")
    return made.replace("{{", "{").replace("}}", "}") if "{{" in text else made


def names(text: str) -> set[str]:
    """The names in braces of a template."""
    return set(_NAME.findall(text))


def words(text: str) -> list[str]:
    """The words of one plain command; raises ShellError for everything else that a shell understands."""
    joined = re.sub(r"\\[ \t]*\n", "", text).strip()
    lexer = shlex.shlex(joined, posix=True, punctuation_chars=PUNCTUATION)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        found = list(lexer)
    except ValueError as error:
        raise ShellError("a quote in it is not closed") from error
    for fault in _faults(found):
        raise ShellError(fault)
    return found


def _faults(found: list[str]) -> Iterator[str]:
    for word in found:
        if word and set(word) <= set(PUNCTUATION):
            yield f"it is more than one plain command ({word.strip() or 'a further line'}); only vllm serve is carried"
        elif "$" in word or "`" in word or word.startswith("~"):
            yield f"a shell would expand {word}, and none runs here; write the value"
        elif word.startswith("#"):
            yield "it has a comment, after which a shell reads no flag; remove the comment"
