"""Regular expressions: RE2's language.

A pattern is parsed as RE2 does. Plain ones run on Python's engine; those on which a backtracking engine could take
forever (repetition in repetition, several unbounded repetitions) run on a machine that follows all threads at once, as
RE2 does, so that no selector can hold up the scheduler. Both prefer the leftmost match, and the first alternative.

Not as in RE2: scripts (`\\p{Greek}`) are unknown; `(?i)` folds one letter to one letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from mooring.cel.errors import NO_SUCH_OVERLOAD, CelError
from mooring.cel.regex_machine import Machine
from mooring.cel.regex_syntax import BadPattern, Chars, Choice, Place, Repeat, Sequence, Tree, parsed
from mooring.cel.values import Duration, Timestamp

__all__ = ["BadPattern", "Pattern", "checked", "compiled", "matches", "matches_constant"]

_PLACES = {"A": r"\A", "z": r"\Z", "^": "(?m:^)", "$": r"(?=\n|\Z)", "b": r"(?a:\b)", "B": r"(?a:\B)"}
_MOST_UNBOUNDED = 2


class Pattern:
    """A compiled pattern."""

    def __init__(self, text: str) -> None:
        tree = parsed(text)
        self._machine: Machine | None = None
        self._python: re.Pattern[str] | None = None
        if _is_harmless(tree):
            self._python = re.compile(_as_python(tree))
        else:
            self._machine = Machine(tree)

    def is_in(self, text: str) -> bool:
        if self._python is not None:
            return self._python.search(text) is not None
        assert self._machine is not None
        return self._machine.search(text, 0) is not None

    def found_in(self, text: str) -> Iterator[str]:
        """All matches, one behind the other. An empty one right behind a match is none."""
        at, end = 0, -1
        while at <= len(text):
            span = self._search(text, at)
            if span is None:
                return
            if span[0] != span[1] or span[0] != end:
                yield text[span[0] : span[1]]
            end = span[1]
            at = span[1] if span[1] > span[0] else span[1] + 1

    def _search(self, text: str, at: int) -> tuple[int, int] | None:
        if self._python is not None:
            match = self._python.search(text, at)
            return match.span() if match else None
        assert self._machine is not None
        return self._machine.search(text, at)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Pattern:
    """The pattern; raises BadPattern."""
    return Pattern(pattern)


def checked(pattern: str) -> Pattern:
    """The pattern; raises CelError."""
    try:
        return compiled(pattern)
    except BadPattern as problem:
        raise CelError(str(problem)) from None


def matches(text: Any, pattern: Any) -> bool:
    """Whether the pattern is found anywhere in the text."""
    if type(text) is not str and not isinstance(text, (Timestamp, Duration)):
        raise CelError(f"{NO_SUCH_OVERLOAD}: matches")
    return matches_constant(text, pattern)


def matches_constant(text: Any, pattern: Any) -> bool:
    """As `matches`, where the pattern was known before: upstream then refuses other values in other words."""
    if type(text) is not str or type(pattern) is not str:
        raise CelError(NO_SUCH_OVERLOAD)
    return checked(pattern).is_in(text)


def _is_harmless(tree: Tree) -> bool:
    """Whether backtracking cannot explode: no repetition in another, few without an end."""
    unbounded = 0

    def walk(node: Tree, *, repeated: bool) -> bool:
        nonlocal unbounded
        match node:
            case Repeat():
                if repeated or (node.most is not None and node.most > 100):
                    return False
                unbounded += node.most is None
                return walk(node.of, repeated=True)
            case Sequence():
                return all(walk(each, repeated=repeated) for each in node.parts)
            case Choice():
                return not repeated and all(walk(each, repeated=repeated) for each in node.branches)
        return True

    return walk(tree, repeated=False) and unbounded <= _MOST_UNBOUNDED


def _as_python(tree: Tree) -> str:
    match tree:
        case Chars():
            return _characters(tree)
        case Place():
            return _PLACES[tree.kind]
        case Sequence():
            return "".join(f"(?:{_as_python(each)})" for each in tree.parts)
        case Choice():
            return "(?:" + "|".join(_as_python(each) for each in tree.branches) + ")"
    most = "" if tree.most is None else str(tree.most)
    return f"(?:{_as_python(tree.of)}){{{tree.least},{most}}}{'' if tree.greedy else '?'}"


def _characters(chars: Chars) -> str:
    if not chars.ranges:
        return "(?!)"
    text = "".join(f"{_point(low)}-{_point(high)}" for low, high in chars.ranges)
    return f"(?i:[{text}])" if chars.fold else f"[{text}]"


def _point(point: int) -> str:
    return f"\\U{point:08x}"
