"""Regular expressions of clients: Go's language, in time linear in the text, and in bounded memory.

RE2 runs them, so no pattern backtracks; `regex_syntax` decides which patterns Go accepts. A large pattern over a long
text can still take long: `steps` is at most how many it takes, and callers with a budget charge them. The characters
of scripts and categories are those of RE2's Unicode, which is newer than Go's.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any

from mooring.base.regex_syntax import BadPattern, translated

__all__ = ["BadPattern", "Pattern", "compiled"]

_USUAL_KIB, _LARGE_KIB = 256, 8192
"""What RE2 may use for a pattern: its program, and the states that it has met. Few need more than the usual."""
_CACHED_KIB = 64 * 1024
_SURROGATES = re.compile("[\ud800-\udfff]")


class Pattern:
    """A compiled pattern."""

    __slots__ = ("__weakref__", "_meets_halves", "_program", "kib", "size")

    def __init__(self, text: str) -> None:
        translation = translated(text).encode("utf-8", "surrogatepass")
        self.kib = _USUAL_KIB
        program = _program(translation, _USUAL_KIB)
        if program is None:
            self.kib = _LARGE_KIB
            program = _program(translation, _LARGE_KIB)
        if program is None:
            raise BadPattern("expression too large", text if len(text) <= 64 else text[:64] + "…")
        self._program = program
        self._meets_halves = rb"\B" in translation
        self.size: int = program.programsize
        """The instructions of its program."""

    def steps(self, text: str) -> int:
        """At most how many instructions a search runs; about a hundred million in a second."""
        steps = self.size * (len(text) + 1)
        return steps * (len(text) + 1) if self._meets_halves and not text.isascii() else steps

    def is_in(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        encoded = text.encode() if text.isascii() else _encoded(text)
        if self._meets_halves:
            return self._search(encoded, 0) is not None
        return self._program.search(encoded) is not None

    def found_in(self, text: str) -> Iterator[str]:
        """All matches, one behind the other. An empty one right behind a match is none."""
        encoded = _encoded(text)
        at, end = 0, -1
        while at <= len(encoded) and (span := self._search(encoded, at)) is not None:
            start, stop = span
            if start != stop or start != end:
                yield encoded[start:stop].decode()
            end = stop
            at = stop if stop > start else _next_character(encoded, stop)

    def _search(self, encoded: bytes, at: int) -> tuple[int, int] | None:
        """The leftmost match from a place on. To RE2, `\\B` also holds between the bytes of a character."""
        while (match := self._program.search(encoded, at)) is not None:
            start, stop = match.span()
            if not self._meets_halves or start != stop or not _is_inside(encoded, start):
                return start, stop
            at = _next_character(encoded, start)
        return None


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # what is no character is one to Go, too, but not to RE2
        return _SURROGATES.sub("\ufffd", text).encode()


def _is_inside(encoded: bytes, at: int) -> bool:
    """Whether the place is between the bytes of one character."""
    return at < len(encoded) and encoded[at] & 0xC0 == 0x80


def _next_character(encoded: bytes, at: int) -> int:
    at += 1
    while _is_inside(encoded, at):
        at += 1
    return at


def _program(translation: bytes, kib: int) -> Any:
    """None where it is too large."""
    import re2

    options = re2.Options()
    options.max_mem = kib * 1024
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(translation, options)
    except re2.error:
        return None
    finally:
        re2.purge()  # it keeps the last 128 programs; ours are kept by what they can use


class _Cache:
    """The patterns used last, within a bound of memory."""

    def __init__(self) -> None:
        self._patterns: OrderedDict[str, Pattern] = OrderedDict()
        self._kib = 0
        self._lock = Lock()

    def get(self, text: str) -> Pattern:
        with self._lock:
            found = self._patterns.get(text)
            if found is not None:
                self._patterns.move_to_end(text)
                return found
        made = Pattern(text)
        with self._lock:
            if text not in self._patterns:
                self._patterns[text] = made
                self._kib += made.kib
                while self._kib > _CACHED_KIB:
                    _, oldest = self._patterns.popitem(last=False)
                    self._kib -= oldest.kib
        return made


_CACHE = _Cache()


def compiled(pattern: str) -> Pattern:
    """The pattern; raises BadPattern."""
    return _CACHE.get(pattern)
