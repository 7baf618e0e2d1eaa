"""Semantic versions in expressions: `semver("1.2.3").isLessThan(...)`."""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering

from mooring.cel import types
from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.errors import CelError
from mooring.cel.text import quoted
from mooring.cel.types import BOOL, INT, STRING
from mooring.cel.values import UINT_MOST, Opaque

SEMVER = types.struct("kubernetes.Semver")

_NUMBER = re.compile(r"[0-9]*")
_WORD = re.compile(r"[0-9A-Za-z-]*")


@total_ordering
class Semver(Opaque):
    """A semantic version. Its order is semver.org's; build metadata does not count."""

    __slots__ = ("build", "key", "numbers", "prerelease")
    cel_type = SEMVER

    def __init__(self, numbers: tuple[int, int, int], prerelease: tuple[str, ...], build: tuple[str, ...]) -> None:
        self.numbers, self.prerelease, self.build = numbers, prerelease, build
        # A release is behind all its prereleases; numbers are before words.
        rank = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in prerelease)
        self.key = (numbers, not prerelease, rank)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __lt__(self, other: Semver) -> bool:
        return self.key < other.key

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        text += f"-{'.'.join(self.prerelease)}" if self.prerelease else ""
        return text + (f"+{'.'.join(self.build)}" if self.build else "")

    def comparable_with(self, other: object) -> bool:
        return isinstance(other, Semver)


class BadVersion(ValueError):
    """Text that is no semantic version, in the words of upstream's parser."""


_LONGEST_REMEMBERED = 128


def parsed_version(text: str) -> Semver:
    """The version; raises BadVersion."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parsed(text)


def _parsed(text: str) -> Semver:
    if not text:
        raise BadVersion("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise BadVersion("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major", "Major"), _number(parts[1], "minor", "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    patch = _number(patch_text, "patch", "Patch")
    before = tuple(_prerelease(each) for each in prerelease.split(".")) if dash else ()
    after = tuple(_build(each) for each in build.split(".")) if plus else ()
    return Semver((major, minor, patch), before, after)


_remembered = lru_cache(maxsize=16_384)(_parsed)


def _number(text: str, name: str, title: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadVersion(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise BadVersion(f"{title} number must not contain leading zeroes {quoted(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    if not text:
        raise BadVersion('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MOST:
        raise BadVersion(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> str:
    if not text:
        raise BadVersion("Prerelease is empty")
    if _NUMBER.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise BadVersion(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        _uint(text)
    elif not _WORD.fullmatch(text):
        raise BadVersion(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise BadVersion("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise BadVersion(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _normalised(text: str) -> str:
    """Without a leading `v` and leading zeros, with what is missing of minor and patch."""
    parts = text.removeprefix("v").split(".", 2)
    for position, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[position] = stripped if stripped[:1].isascii() and stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise BadVersion("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _version(text: str, normalise: bool = False) -> Semver:
    try:
        return parsed_version(_normalised(text) if normalise else text)
    except BadVersion as problem:
        raise CelError(str(problem)) from None


def _is_version(text: str, normalise: bool = False) -> bool:
    try:
        parsed_version(_normalised(text) if normalise else text)
    except BadVersion:
        return False
    return True


def _as_int64(number: int) -> int:
    """Upstream's numbers are unsigned and become signed without a check."""
    return number if number < 2**63 else number - 2**64


_TWO = (SEMVER, SEMVER)

FUNCTIONS: list[Function] = [
    function(
        "semver",
        overload("string_to_semver", (STRING,), SEMVER, _version),
        overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _version),
    ),
    function(
        "isSemver",
        overload("is_semver_string", (STRING,), BOOL, _is_version),
        overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_version),
    ),
    function("isGreaterThan", member("semver_is_greater_than", _TWO, BOOL, lambda one, other: one > other)),
    function("isLessThan", member("semver_is_less_than", _TWO, BOOL, lambda one, other: one < other)),
    function("compareTo", member("semver_compare_to", _TWO, INT, lambda one, other: (one > other) - (one < other))),
    *(
        function(
            name,
            member(f"semver_{name}", (SEMVER,), INT, lambda of, at=position: _as_int64(of.numbers[at])),
        )
        for position, name in enumerate(("major", "minor", "patch"))
    ),
]
