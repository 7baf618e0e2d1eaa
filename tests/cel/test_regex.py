"""Regular expressions: RE2's language, on either engine, and never for long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cel.regex import BadPattern, Pattern
from mooring.cel.regex_machine import Machine
from mooring.cel.regex_syntax import parsed

FOUND = {
    "the leftmost match": ("l+", "hello", ["ll"]),
    "the first alternative, not the longest": ("h|he|hel", "hello", ["h"]),
    "empty matches between, none right behind a match": ("l*", "hello", ["", "", "ll", ""]),
    "the end is the end of the text": ("b$", "b\n", []),
    "and of the line where asked for": ("(?m)b$", "b\n", ["b"]),
    "a dot is no line end": ("a.b", "a\nb", []),
    "case folded": ("(?i)HÉ", "hé", ["hé"]),
    "swapped greed": ("(?U)l+", "hello", ["l", "l"]),
    "classes by name": ("[[:upper:]]+", "aBCd", ["BC"]),
    "letters of any script": (r"\pL+", "naïve 1", ["naïve"]),
    "braces that are no count are text": ("a{,2}", "a{,2}", ["a{,2}"]),
    "quoted text": (r"\Qa.b\E", "axb a.b", ["a.b"]),
    "digits are ASCII": (r"\d", "٣", []),
}


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND.values(), ids=FOUND.keys())
def test_a_pattern_finds(pattern: str, text: str, found: list[str]) -> None:
    assert list(Pattern(pattern).found_in(text)) == found


REFUSED = {
    "look-ahead": ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
    "look-behind": ("(?<=a)b", "invalid or unsupported Perl syntax: `(?<`"),
    "a back reference": (r"(a)\1", r"invalid escape sequence: `\1`"),
    "a possessive repetition": ("a*+", "invalid nested repetition operator: `*+`"),
    "an open class": ("[a", "missing closing ]: `[a`"),
    "an open group": ("(a", "missing closing ): `(a`"),
    "a range upside down": ("[b-a]", "invalid character class range: `b-a`"),
    "more than a thousand": ("a{1001}", "invalid repeat count: `{1001}`"),
    "nothing to repeat": ("*a", "missing argument to repetition operator: `*`"),
}


@pytest.mark.parametrize(("pattern", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_pattern_is_refused_in_the_words_of_go(pattern: str, reason: str) -> None:
    with pytest.raises(BadPattern) as raised:
        Pattern(pattern)
    assert str(raised.value) == f"error parsing regexp: {reason}"


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)*$", "(a*)*b", "a*a*a*a*a*b"])
def test_no_pattern_takes_forever(pattern: str) -> None:
    assert not Pattern(pattern).is_in("a" * 200 + "c")


PIECES = st.sampled_from(
    ["a", "b", "ab", "(a|b)", "(a|ab)", "[ab]", ".", "a*", "b+", "a?", "(ab)*", "(a|b)+?", "^", "$"],
)


@given(st.lists(PIECES, max_size=5).map("".join), st.text("abc", max_size=12))
def test_both_engines_find_the_same(pattern: str, text: str) -> None:
    python = re.search(pattern.replace("$", r"\Z"), text)
    assert Machine(parsed(pattern)).search(text, 0) == (python.span() if python else None)
    assert Pattern(pattern).is_in(text) is (python is not None)
