"""The syntax of Go's `regexp`, translated to RE2's, with Go's error messages.

The two engines share a language but not every spelling: `\\C`, counts with leading zeros, names of groups, categories
by their long names. The translation writes only what both engines read alike, and refuses what Go refuses.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

MOST_REPEATS = 1000
LONGEST_PATTERN = 32_768
"""In characters. Go has no such limit; its programs end at 128 MiB."""
_DEEPEST = 1000
_TOP = 0x10FFFF

_COUNT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_OPENING = re.compile(r"\(\?(?:<.|P<.)", re.DOTALL)
_GROUP_NAME = re.compile(r"[A-Za-z0-9_]+")
_HEX = re.compile(r"\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2})")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_SIMPLE_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_POSIX = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit"

_CATEGORIES = {
    "Cc": "Control cntrl",
    "Cf": "Format",
    "Co": "Private_Use",
    "Cs": "Surrogate",
    "L": "Letter",
    "Ll": "Lowercase_Letter",
    "Lm": "Modifier_Letter",
    "Lo": "Other_Letter",
    "Lt": "Titlecase_Letter",
    "Lu": "Uppercase_Letter",
    "M": "Mark Combining_Mark",
    "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark",
    "Mn": "Nonspacing_Mark",
    "N": "Number",
    "Nd": "Decimal_Number digit",
    "Nl": "Letter_Number",
    "No": "Other_Number",
    "P": "Punctuation punct",
    "Pc": "Connector_Punctuation",
    "Pd": "Dash_Punctuation",
    "Pe": "Close_Punctuation",
    "Pf": "Final_Punctuation",
    "Pi": "Initial_Punctuation",
    "Po": "Other_Punctuation",
    "Ps": "Open_Punctuation",
    "S": "Symbol",
    "Sc": "Currency_Symbol",
    "Sk": "Modifier_Symbol",
    "Sm": "Math_Symbol",
    "So": "Other_Symbol",
    "Z": "Separator",
    "Zl": "Line_Separator",
    "Zp": "Paragraph_Separator",
    "Zs": "Space_Separator",
}
"""Those that RE2 knows, with their other names in Go."""


_SCRIPTS = """
    Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese
    Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra
    Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul
    Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage
    Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo
    Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto
    Ugaritic Vai Vithkuqi Wancho Yezidi Yi
"""
"""Of Unicode 15. Go finds no script of several words."""


class BadPattern(ValueError):
    """A pattern that is none, with Go's message."""

    def __init__(self, code: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{part}`")


@dataclass(slots=True)
class _Part:
    """A piece of the translation."""

    text: str
    repeats: int = 1
    """The largest product of counts that apply to one character of it."""
    height: int = 1


class _Flags(NamedTuple):
    fold: bool = False
    multiline: bool = False
    dot_all: bool = False
    ungreedy: bool = False


@dataclass(slots=True)
class _Group:
    """A group that is not closed yet; the pattern itself is the outermost."""

    outer: _Flags
    captures: bool = True
    branches: list[_Part] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)

    def next_branch(self) -> None:
        height = max((each.height for each in self.parts), default=0) + (len(self.parts) > 1)
        self.branches.append(
            _Part(
                "".join(each.text for each in self.parts), max((each.repeats for each in self.parts), default=1), height
            )
        )
        self.parts = []

    def closed(self) -> _Part:
        self.next_branch()
        height = max(each.height for each in self.branches) + (len(self.branches) > 1) + self.captures
        text = "|".join(each.text for each in self.branches)
        return _Part(f"(?:{text})", max(each.repeats for each in self.branches), height)


def translated(pattern: str) -> str:
    """The pattern as RE2 reads it; raises BadPattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"expression too large ({len(pattern)} characters, at most {LONGEST_PATTERN})", pattern[:64])
    return _Translator(pattern).run()


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = _Flags()
        self._open = [_Group(self._flags, captures=False)]

    def run(self) -> str:
        pattern = self._pattern
        last_repeat = -1  # where the repetition right before this place began
        while self._at < len(pattern):
            start, repeat = self._at, -1
            character = pattern[start]
            if character in "*+?":
                repeat = self._repetition(start, last_repeat, {"*": (0, None), "+": (1, None), "?": (0, 1)}[character])
            elif character == "{" and (counted := _COUNT.match(pattern, start)) is not None:
                repeat = self._counted(start, last_repeat, counted)
            elif character == "(":
                self._group()
            elif character == ")":
                self._end_of_group()
            elif character == "|":
                self._at += 1
                self._open[-1].next_branch()
            else:
                self._atom(character)
            last_repeat = repeat
        if len(self._open) > 1:
            raise BadPattern("missing closing )", pattern)
        return self._closed().text

    def _closed(self) -> _Part:
        part = self._open.pop().closed()
        if part.height > _DEEPEST:
            raise BadPattern("expression nests too deeply", self._pattern)
        return part

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._at : self._at + length]

    def _add(self, text: str) -> None:
        self._open[-1].parts.append(_Part(f"(?i:{text})" if self._flags.fold else text))

    # Repetition

    def _counted(self, start: int, last_repeat: int, counted: re.Match[str]) -> int:
        least = _count(counted[1])
        most = least if not counted[2] else _count(counted[3]) if counted[3] else None
        if least > MOST_REPEATS or (most is not None and (most > MOST_REPEATS or least > most)):
            raise BadPattern("invalid repeat count", counted[0])
        self._at = counted.end() - 1
        return self._repetition(start, last_repeat, (least, most))

    def _repetition(self, start: int, last_repeat: int, times: tuple[int, int | None]) -> int:
        """Applies to the last part; `_at` is at the operator's last character."""
        self._at += 1
        is_greedy = not self._flags.ungreedy
        if self._peek() == "?":
            self._at += 1
            is_greedy = not is_greedy
        if last_repeat >= 0:
            raise BadPattern("invalid nested repetition operator", self._pattern[last_repeat : self._at])
        operator = self._pattern[start : self._at]
        parts = self._open[-1].parts
        if not parts:
            raise BadPattern("missing argument to repetition operator", operator)
        least, most = times
        part = parts[-1]
        repeats = 1 if most == 0 else max(least if most is None else most, 1) * part.repeats
        if repeats > MOST_REPEATS:
            raise BadPattern("invalid repeat count", operator)
        shown = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get(times)
        if shown is None:
            shown = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
        parts[-1] = _Part(f"(?:{part.text}){shown}{'' if is_greedy else '?'}", repeats, part.height + 1)
        return start

    # Groups

    def _group(self) -> None:
        flags = self._flags
        captures = True
        if self._peek(2) != "(?":
            self._at += 1
        elif (name := _OPENING.match(self._pattern, self._at)) is not None:
            self._named_group(name.end() - 1)
        elif self._flag_group():
            captures = False
        else:
            return  # flags alone, which hold from here on
        self._open.append(_Group(flags, captures))

    def _named_group(self, begin: int) -> None:
        end = self._pattern.find(">", self._at)
        if end < 0:
            raise BadPattern("invalid named capture", self._pattern[self._at :])
        if not _GROUP_NAME.fullmatch(self._pattern, begin, end):
            raise BadPattern("invalid named capture", self._pattern[self._at : end + 1])
        self._at = end + 1

    def _flag_group(self) -> bool:
        """What follows `(?`; whether a group has begun."""
        start = self._at
        wanted, seen = True, False
        flags = self._flags
        for at in range(start + 2, len(self._pattern)):
            character = self._pattern[at]
            if character in "imsU":
                seen = True
                flags = flags._replace(**{_FLAGS[character]: wanted})
            elif character == "-" and wanted:
                wanted, seen = False, False
            elif character in ":)" and (wanted or seen):
                self._at, self._flags = at + 1, flags
                return character == ":"
            else:
                raise BadPattern("invalid or unsupported Perl syntax", self._pattern[start : at + 1])
        raise BadPattern("invalid or unsupported Perl syntax", self._pattern[start:])

    def _end_of_group(self) -> None:
        if len(self._open) == 1:
            raise BadPattern("unexpected )", self._pattern)
        self._at += 1
        self._flags = self._open[-1].outer
        part = self._closed()
        self._open[-1].parts.append(part)

    # Single characters and places

    def _atom(self, character: str) -> None:
        if character == "[":
            self._class()
        elif character == "\\":
            self._escape()
        else:
            self._at += 1
            if character == "^":
                self._add("(?m:^)" if self._flags.multiline else r"\A")
            elif character == "$":
                self._add("(?m:$)" if self._flags.multiline else r"\z")
            elif character == ".":
                self._add("(?s:.)" if self._flags.dot_all else r"[^\n]")
            else:
                self._add(_point(ord(character)))

    def _escape(self) -> None:
        two = self._peek(2)
        if two == r"\Q":
            end = self._pattern.find(r"\E", self._at)
            for each in self._pattern[self._at + 2 : end if end >= 0 else len(self._pattern)]:
                self._add(_point(ord(each)))
            self._at = end + 2 if end >= 0 else len(self._pattern)
        elif two in (r"\A", r"\b", r"\B", r"\z"):
            self._at += 2
            self._add(two)
        elif (text := self._class_escape()) is not None:
            self._add(f"[{text}]")
        else:
            self._add(_point(self._escaped_point()))

    def _class_escape(self) -> str | None:
        """`\\d`, `\\pL`, `\\P{Lu}` and their like, as they stand between brackets."""
        letter = self._pattern[self._at + 1 : self._at + 2]
        if letter and letter in "dDsSwW":
            self._at += 2
            return "\\" + letter
        if letter not in ("p", "P"):
            return None
        start = self._at
        if self._pattern[start + 2 : start + 3] == "{":
            end = self._pattern.find("}", start)
            if end < 0:
                raise BadPattern("invalid character class range", self._pattern[start:])
            name, self._at = self._pattern[start + 3 : end], end + 1
        else:
            name, self._at = self._pattern[start + 2 : start + 3], start + 3
        found = _named_class(name.removeprefix("^"), negated=(letter == "P") != name.startswith("^"))
        if found is None:
            raise BadPattern("invalid character class range", self._pattern[start : self._at])
        return found

    def _escaped_point(self) -> int:
        start = self._at
        character = self._pattern[start + 1 : start + 2]
        if not character:
            raise BadPattern("trailing backslash at end of expression", "")
        self._at += 2
        if character in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[character]
        if character in "01234567" and (character == "0" or self._peek() in tuple("01234567")):
            digits = character
            while len(digits) < 3 and self._peek() in tuple("01234567"):
                digits += self._peek()
                self._at += 1
            return int(digits, 8)
        if character == "x":
            return self._hexadecimal(start)
        if ord(character) < 0x80 and not character.isalnum():
            return ord(character)
        raise BadPattern("invalid escape sequence", self._pattern[start : self._at])

    def _hexadecimal(self, start: int) -> int:
        found = _HEX.match(self._pattern, self._at)
        if found is not None and len((found[1] or found[2]).lstrip("0")) <= 6:
            point = int(found[1] or found[2], 16)
            if point <= _TOP:
                self._at = found.end()
                return point
        raise BadPattern(
            "invalid escape sequence", self._pattern[start : _end_of_bad_hexadecimal(self._pattern, self._at)]
        )

    # Classes

    def _class(self) -> None:
        start = self._at
        self._at += 1
        is_negated = self._peek() == "^"
        self._at += is_negated
        pieces: list[str] = []
        while self._peek() != "]" or not pieces:
            pieces.append(self._posix() or self._class_escape_inside() or self._class_range(start))
        self._at += 1
        self._add(f"[{'^' if is_negated else ''}{''.join(pieces)}]")

    def _class_escape_inside(self) -> str | None:
        return self._class_escape() if self._peek() == "\\" else None

    def _posix(self) -> str | None:
        if self._peek(2) != "[:":
            return None
        end = self._pattern.find(":]", self._at + 2)
        if end < 0:
            return None
        text = self._pattern[self._at : end + 2]
        if text[2:-2].removeprefix("^") not in _POSIX_NAMES:
            raise BadPattern("invalid character class range", text)
        self._at = end + 2
        return text

    def _class_range(self, start: int) -> str:
        begin = self._at
        low = high = self._class_point(start)
        if self._peek() == "-" and self._peek(2)[1:] not in ("", "]"):
            self._at += 1
            high = self._class_point(start)
            if high < low:
                raise BadPattern("invalid character class range", self._pattern[begin : self._at])
        return _range(low, high)

    def _class_point(self, start: int) -> int:
        character = self._peek()
        if not character:
            raise BadPattern("missing closing ]", self._pattern[start:])
        if character == "\\":
            return self._escaped_point()
        self._at += 1
        return ord(character)


_FLAGS = {"i": "fold", "m": "multiline", "s": "dot_all", "U": "ungreedy"}


def _count(digits: str) -> int:
    return int(digits) if len(digits) < 9 else MOST_REPEATS + 1


def _point(point: int) -> str:
    return chr(point) if chr(point).isalnum() and point < 0x80 else f"\\x{{{point:x}}}"


def _range(low: int, high: int) -> str:
    return _point(low) if low == high else f"{_point(low)}-{_point(high)}"


def _end_of_bad_hexadecimal(pattern: str, at: int) -> int:
    """Go names the text up to the character that made it give up."""
    if pattern[at : at + 1] != "{":
        return at + 2
    at += 1
    value = 0
    while at < len(pattern) and pattern[at] in _HEX_DIGITS:
        value = value * 16 + int(pattern[at], 16)
        at += 1
        if value > _TOP:
            return at
    return at + 1


@lru_cache(maxsize=256)
def _named_class(name: str, *, negated: bool) -> str | None:
    """A category or script as it stands between brackets; None where Go knows none of that name."""
    canonical = re.sub("[ _-]", "", name).capitalize()
    p = r"\P" if negated else r"\p"
    if canonical in _CLASSES:
        return f"{p}{{{_CLASSES[canonical]}}}"
    if canonical in _SCRIPT_NAMES or canonical == "Any":
        return f"{p}{{{canonical}}}"
    if canonical == "Ascii":
        return r"[:^ascii:]" if negated else r"[:ascii:]"
    if canonical in ("Lc", "Casedletter"):
        return _ranges(frozenset({"Lu", "Ll", "Lt"}), negated=negated)
    if canonical in ("Cn", "Unassigned"):
        return _ranges(frozenset({"Cn"}), negated=negated)
    if canonical == "Assigned":
        return _ranges(frozenset({"Cn"}), negated=not negated)
    if canonical in ("C", "Other"):
        return _ranges(frozenset({"Cc", "Cf", "Cn", "Co", "Cs"}), negated=negated)
    return None


_POSIX_NAMES = frozenset(_POSIX.split())
_SCRIPT_NAMES = frozenset(_SCRIPTS.split())
_CLASSES = {
    each.replace("_", "").capitalize(): code for code, names in _CATEGORIES.items() for each in (code, *names.split())
}


def _ranges(categories: frozenset[str], *, negated: bool) -> str:
    """The characters of categories that RE2 knows no name for, as Python's Unicode has them."""
    points = range(_TOP + 1)
    ranges: list[str] = []
    start = 0
    for is_in, run in groupby(unicodedata.category(chr(point)) in categories for point in points):
        end = start + sum(1 for _ in run)
        if is_in is not negated:
            ranges.append(_range(start, end - 1))
        start = end
    return "".join(ranges)
