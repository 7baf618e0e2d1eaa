"""RE2's syntax to a tree, with the mistakes in Go's words.

What only backtracking engines know (look-around, back references, possessive repetition) is no RE2 and is refused here,
so that a pattern means the same everywhere or nothing at all.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

LARGEST_REPEAT = 1000
_DEEPEST = 1000
_TOP = 0x10FFFF
Range = tuple[int, int]

_DIGIT = ((0x30, 0x39),)
_SPACE = ((9, 10), (12, 13), (32, 32))
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX: dict[str, tuple[Range, ...]] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0, 0x7F),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((9, 13), (32, 32)),
    "upper": ((0x41, 0x5A),),
    "word": _WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_SIMPLE_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_NAME = re.compile(r"[A-Za-z0-9_]+")


class BadPattern(ValueError):
    """A pattern that is none, as Go says it."""

    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{part}`")


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    ranges: tuple[Range, ...]
    fold: bool = False


@dataclass(frozen=True)
class Place:
    """A place without characters: begin, end, line begin, line end, word boundary or none (A z ^ $ b B)."""

    kind: str


@dataclass(frozen=True)
class Sequence:
    """One after the other; empty, it matches nothing at all."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    """The first that fits."""

    branches: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """Between `least` and `most` (None: no end) times."""

    of: Tree
    least: int
    most: int | None
    greedy: bool


Tree = Chars | Place | Sequence | Choice | Repeat


def inverted(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Everything else."""
    gaps: list[Range] = []
    start = 0
    for low, high in merged(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= _TOP:
        gaps.append((start, _TOP))
    return tuple(gaps)


def merged(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


@lru_cache(maxsize=1)
def _runs() -> list[tuple[str, Range]]:
    """All characters in runs of one general category."""
    runs: list[tuple[str, Range]] = []
    start = 0
    for name, run in groupby(map(unicodedata.category, map(chr, range(_TOP + 1)))):
        end = start + sum(1 for _ in run)
        runs.append((name, (start, end - 1)))
        start = end
    return runs


@lru_cache(maxsize=64)
def _category(name: str) -> tuple[Range, ...] | None:
    """The characters of a general category; scripts are not known to Python."""
    if not re.fullmatch("[A-Z][a-z]?", name):
        return ((0, _TOP),) if name == "Any" else None
    return merged(tuple(run for each, run in _runs() if each.startswith(name))) or None


def parsed(pattern: str) -> Tree:
    """The tree; raises BadPattern."""
    parser = _Parser(pattern)
    tree = parser.choice()
    if parser.at < len(pattern):
        raise BadPattern("unexpected )", pattern)
    return tree


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.fold = self.multiline = self.dot_all = self.ungreedy = False
        self.depth = 0

    def choice(self) -> Tree:
        branches = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        repeated = ""
        while (character := self._peek()) and character not in "|)":
            start = self.at
            if character in "*+?" or (character == "{" and _COUNT.match(self.pattern, self.at)):
                operator = self._repetition(parts, repeated)
                repeated = repeated + operator if repeated else operator
                continue
            repeated = ""
            atom = self._atom()
            if atom is not None:
                parts.append(atom)
            elif self.at == start:
                break
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repetition(self, parts: list[Tree], repeated: str) -> str:
        start = self.at
        counted = _COUNT.match(self.pattern, start)
        if counted:
            self.at = counted.end()
            least = int(counted[1]) if len(counted[1]) < 9 else LARGEST_REPEAT + 1
            most: int | None = least
            if counted[2]:
                most = int(counted[3][:9]) if counted[3] else None
            if least > LARGEST_REPEAT or (most is not None and (most > LARGEST_REPEAT or least > most)):
                raise BadPattern("invalid repeat count", counted[0])
        else:
            self.at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.pattern[start]]
        operator = self.pattern[start : self.at]
        greedy = not self.ungreedy
        if self._peek() == "?":
            self.at += 1
            greedy = not greedy
            operator += "?"
        if repeated:
            raise BadPattern("invalid nested repetition operator", repeated + operator)
        if not parts:
            raise BadPattern("missing argument to repetition operator", operator)
        parts[-1] = Repeat(parts[-1], least, most, greedy)
        if _weight(parts[-1]) > LARGEST_REPEAT:
            raise BadPattern("invalid repeat count", operator)
        return operator

    def _atom(self) -> Tree | None:
        character = self._peek()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "^":
                self.at += 1
                return Place("^" if self.multiline else "A")
            case "$":
                self.at += 1
                return Place("$" if self.multiline else "z")
            case ".":
                self.at += 1
                return Chars(((0, _TOP),) if self.dot_all else ((0, 9), (11, _TOP)))
            case "\\":
                return self._escape()
        self.at += 1
        return self._literal(ord(character))

    def _literal(self, point: int) -> Chars:
        return Chars(((point, point),), self.fold)

    def _group(self) -> Tree | None:
        flags = self.fold, self.multiline, self.dot_all, self.ungreedy
        self.depth += 1
        if self.depth > _DEEPEST:
            raise BadPattern("expression nests too deeply", self.pattern)
        if self._peek(2) == "(?":
            if not self._special_group():
                self.depth -= 1
                return None  # only flags, which hold from here on
        else:
            self.at += 1
        inner = self.choice()
        if self._peek() != ")":
            raise BadPattern("missing closing )", self.pattern)
        self.at += 1
        self.depth -= 1
        self.fold, self.multiline, self.dot_all, self.ungreedy = flags
        return inner if isinstance(inner, Choice) else Sequence((inner,))

    def _special_group(self) -> bool:
        """What follows `(?`; whether a group has begun."""
        rest = self.pattern[self.at :]
        if rest.startswith(("(?P<", "(?<")) and not rest.startswith(("(?<=", "(?<!")):
            opening = rest.index("<")
            end = rest.find(">")
            if end < 0:
                raise BadPattern("invalid named capture", rest)
            name = rest[opening + 1 : end]
            if not _NAME.fullmatch(name):
                raise BadPattern("invalid named capture", rest[: end + 1])
            self.at += end + 1
            return True
        return self._flags(rest)

    def _flags(self, rest: str) -> bool:
        wanted, seen = True, False
        for position, character in enumerate(rest[2:], start=2):
            if character in "imsU":
                seen = True
                if character == "i":
                    self.fold = wanted
                elif character == "m":
                    self.multiline = wanted
                elif character == "s":
                    self.dot_all = wanted
                else:
                    self.ungreedy = wanted
            elif character == "-" and wanted:
                wanted, seen = False, False
            elif character in ":)" and (wanted or seen):
                self.at += position + 1
                return character == ":"
            else:
                raise BadPattern("invalid or unsupported Perl syntax", rest[: position + 1])
        raise BadPattern("invalid or unsupported Perl syntax", rest)

    def _escape(self) -> Tree:
        if self._peek(2) == "\\Q":
            end = self.pattern.find("\\E", self.at)
            text = self.pattern[self.at + 2 : end if end >= 0 else len(self.pattern)]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            return Sequence(tuple(self._literal(ord(each)) for each in text))
        character = self.pattern[self.at + 1 : self.at + 2]
        if character in ("A", "b", "B", "z"):
            self.at += 2
            return Place(character)
        if (ranges := self._class_escape()) is not None:
            return Chars(ranges, self.fold)
        return self._literal(self._escaped_point())

    def _class_escape(self) -> tuple[Range, ...] | None:
        """`\\d`, `\\pL`, `\\P{Lu}` and their like."""
        character = self.pattern[self.at + 1 : self.at + 2]
        if character and character in "dDsSwW":
            self.at += 2
            ranges = _PERL[character.lower()]
            return ranges if character.islower() else inverted(ranges)
        if character not in ("p", "P"):
            return None
        start = self.at
        if self.pattern[start + 2 : start + 3] == "{":
            end = self.pattern.find("}", start)
            if end < 0:
                raise BadPattern("invalid character class range", self.pattern[start:])
            name, self.at = self.pattern[start + 3 : end], end + 1
        else:
            name, self.at = self.pattern[start + 2 : start + 3], start + 3
        negated = (character == "P") != name.startswith("^")
        ranges_of = _category(name.removeprefix("^"))
        if ranges_of is None:
            raise BadPattern("invalid character class range", self.pattern[start : self.at])
        return inverted(ranges_of) if negated else ranges_of

    def _escaped_point(self) -> int:
        start = self.at
        character = self.pattern[start + 1 : start + 2]
        if not character:
            raise BadPattern("trailing backslash at end of expression", "")
        self.at += 2
        if character in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[character]
        if character in "01234567" and (character == "0" or self._peek() in tuple("01234567")):
            digits = character
            while len(digits) < 3 and self._peek() and self._peek() in "01234567":
                digits += self._peek()
                self.at += 1
            return int(digits, 8)
        if character == "x":
            match = re.compile(r"\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2})").match(self.pattern, self.at)
            if match and int(match[1] or match[2], 16) <= _TOP:
                self.at = match.end()
                return int(match[1] or match[2], 16)
            end = self.at + 1 if self._peek() != "{" else self.at
            raise BadPattern("invalid escape sequence", self.pattern[start : max(end, start + 2)])
        if ord(character) < 0x80 and not character.isalnum() and character != "_":
            return ord(character)
        raise BadPattern("invalid escape sequence", self.pattern[start : self.at])

    def _class(self) -> Tree:
        start = self.at
        self.at += 1
        negated = self._peek() == "^"
        self.at += negated
        ranges: list[Range] = []
        first = True
        while not self._peek() or self._peek() != "]" or first:
            if not self._peek():
                raise BadPattern("missing closing ]", self.pattern[start:])
            first = False
            if (posix := self._posix()) is not None:
                ranges += posix
                continue
            if self._peek() == "\\" and (of := self._class_escape()) is not None:
                ranges += of
                continue
            ranges.append(self._class_range(start))
        self.at += 1
        found = merged(tuple(ranges))
        if not negated:
            return Chars(found, self.fold)
        return Chars(inverted(folded(found) if self.fold else found))

    def _posix(self) -> tuple[Range, ...] | None:
        match = re.compile(r"\[:(\^?)(.*?):\]").match(self.pattern, self.at)
        if match is None:
            return None
        if match[2] not in _POSIX:
            raise BadPattern("invalid character class range", match[0])
        self.at = match.end()
        ranges = _POSIX[match[2]]
        return inverted(ranges) if match[1] else ranges

    def _class_range(self, start: int) -> Range:
        begin = self.at
        low = self._class_point(start)
        if self._peek() == "-" and self._peek(2)[1:] not in ("", "]"):
            self.at += 1
            high = self._class_point(start)
            if high < low:
                raise BadPattern("invalid character class range", self.pattern[begin : self.at])
            return low, high
        return low, low

    def _class_point(self, start: int) -> int:
        character = self._peek()
        if not character:
            raise BadPattern("missing closing ]", self.pattern[start:])
        if character == "\\":
            return self._escaped_point()
        self.at += 1
        return ord(character)


def folded(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """With the other case of every letter."""
    more: list[Range] = list(ranges)
    for low, high in ranges:
        for point in range(low, min(high, low + 0x3000) + 1):
            character = chr(point)
            for other in {character.lower(), character.upper()}:
                if len(other) == 1 and other != character:
                    more.append((ord(other), ord(other)))
    return merged(tuple(more))


def _weight(tree: Tree) -> int:
    """How often, at most, counted repetitions repeat what is in them: Go allows a thousand."""
    match tree:
        case Repeat():
            bound = tree.least if tree.most is None else tree.most
            return max(bound, 1) * _weight(tree.of)
        case Sequence():
            return max(map(_weight, tree.parts), default=1)
        case Choice():
            return max(map(_weight, tree.branches), default=1)
    return 1
