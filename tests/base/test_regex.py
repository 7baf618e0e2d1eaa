"""Regular expressions: Go's language on RE2, and never for long."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base import regex
from mooring.base.regex import BadPattern, Pattern, compiled
from mooring.base.regex_syntax import LONGEST_PATTERN

FOUND = {
    "the leftmost match": ("l+", "hello", ["ll"]),
    "the first alternative, not the longest": ("h|he|hel", "hello", ["h"]),
    "empty matches between, none right behind a match": ("l*", "hello", ["", "", "ll", ""]),
    "the end is the end of the text": ("b$", "b\n", []),
    "and of the line with (?m)": ("(?m)b$", "b\n", ["b"]),
    "a dot is no line end": ("a.b", "a\nb", []),
    "case folded": ("(?i)HÉ", "hé", ["hé"]),
    "swapped greed": ("(?U)l+", "hello", ["l", "l"]),
    "classes by name": ("[[:upper:]]+", "aBCd", ["BC"]),
    "letters of any script": (r"\pL+", "naïve 1", ["naïve"]),
    "letters of one script": (r"\p{Greek}+", "aαβ", ["αβ"]),
    "braces that are no count are text": ("a{,2}", "a{,2}", ["a{,2}"]),
    "quoted text": (r"\Qa.b\E", "axb a.b", ["a.b"]),
    "digits are ASCII": (r"\d", "٣", []),
    "no place inside a character": (r"\B", "aſ1", []),
    "half a surrogate pair is a character": ("^.$", "\ud800", ["\ufffd"]),
}


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND.values(), ids=FOUND.keys())
def test_a_pattern_finds(pattern: str, text: str, found: list[str]) -> None:
    assert list(Pattern(pattern).found_in(text)) == found
    assert Pattern(pattern).is_in(text) is bool(found)


REFUSED = {
    "look-ahead": ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    "look-behind": ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
    "a back reference": (r"(a)\1", r"invalid escape sequence: `\1`"),
    "a single byte": (r"\C", r"invalid escape sequence: `\C`"),
    "a possessive repetition": ("a*+", "invalid nested repetition operator: `*+`"),
    "an open class": ("[a", "missing closing ]: `[a`"),
    "an open group": ("(a", "missing closing ): `(a`"),
    "a range upside down": ("[b-a]", "invalid character class range: `b-a`"),
    "more than a thousand": ("a{1001}", "invalid repeat count: `{1001}`"),
    "more than a thousand by counts in counts": ("(a{100}){11}", "invalid repeat count: `{11}`"),
    "nothing to repeat": ("*a", "missing argument to repetition operator: `*`"),
    "a program that is too large": (r"\pL{1000}", r"expression too large: `\pL{1000}`"),
    "a pattern that is too long": (
        "a" * (LONGEST_PATTERN + 1),
        f"expression too large (32769 characters, at most 32768): `{'a' * 64}`",
    ),
}


@pytest.mark.parametrize(("pattern", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_pattern_is_refused_in_the_words_of_go(pattern: str, reason: str) -> None:
    with pytest.raises(BadPattern) as raised:
        Pattern(pattern)
    assert str(raised.value) == f"error parsing regexp: {reason}"


RECORDED = json.loads((Path(__file__).parent / "regex_of_go.json").read_text())
"""Made patterns with the result of Go 1.26's regexp: its error, or by text all that it finds."""


def test_patterns_mean_what_they_mean_to_go() -> None:
    assert {pattern: _outcome(pattern, of_go) for pattern, of_go in RECORDED} == dict(RECORDED)


def _outcome(pattern: str, texts: str | dict[str, list[str]]) -> str | dict[str, list[str]]:
    try:
        made = Pattern(pattern)
    except BadPattern as problem:
        return str(problem)
    return {text: list(made.found_in(text)) for text in texts}


@given(st.text("abé(?:)[^-]{1,2}*+|\\pLQEdx\n$", max_size=40), st.text("abé\n", max_size=20))
def test_any_text_is_a_pattern_or_refused(pattern: str, text: str) -> None:
    try:
        made = Pattern(pattern)
    except BadPattern:
        return
    assert made.is_in(text) is bool(list(made.found_in(text)))
    assert made.steps(text) >= made.size


def test_patterns_are_kept_within_a_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_CACHE", cache := regex._Cache())
    first = compiled("a{0}")
    assert compiled("a{0}") is first
    for number in range(400):
        compiled(f"a{{{number}}}b")
    assert cache._kib <= regex._CACHED_KIB
    assert compiled("a{0}") is not first


def test_the_engine_is_loaded_with_the_first_pattern() -> None:
    code = "import sys, mooring.base.regex, mooring.cel.device; assert 're2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
