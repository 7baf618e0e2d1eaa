"""Characters to tokens, by CEL's lexical grammar.

The longest token wins. Where no token starts, the characters that could have begun one are skipped with an issue, and
reading goes on behind them: an expression is reported with all its mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mooring.cel.errors import Issue

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = (
    rf'(?:"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]""".*?"""'
    r"|[rR]'''.*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*')"
)
_TOKEN = re.compile(
    rf"""(?P<hidden>[\t\ \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB]{_STRING})
    |(?P<string>{_STRING})
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<identifier>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])""".replace("\n    ", ""),
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
# What a token could have begun with where none could be finished, per first character.
_BEGINNINGS = {
    '"': re.compile(rf'"""(?:{_ESCAPE}|[^\\])*|"(?:{_ESCAPE}|[^\\"\n\r])*', re.DOTALL),
    "'": re.compile(rf"'''(?:{_ESCAPE}|[^\\])*|'(?:{_ESCAPE}|[^\\'\n\r])*", re.DOTALL),
    "`": re.compile(r"`[A-Za-z0-9_.\-/ ]*"),
    "&": re.compile("&"),
    "|": re.compile(r"\|"),
    "=": re.compile("="),
}
_PARTIAL_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is the operator or keyword itself, or one of int, uint, float, string, bytes, identifier, escaped, EOF."""

    kind: str
    text: str
    offset: int


def tokens(text: str, issues: list[Issue]) -> Iterator[Token]:
    """The tokens of the text, and an EOF. What is no token goes into the issues."""
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            offset = _skip(text, offset, issues)
            continue
        kind, found = str(match.lastgroup), match.group()
        if kind == "operator" or (kind == "identifier" and found in _KEYWORDS):
            kind = found
        if kind != "hidden":
            yield Token(kind, found, offset)
        offset = match.end()
    yield Token("EOF", "<EOF>", len(text))


def _skip(text: str, offset: int, issues: list[Issue]) -> int:
    end = offset
    if (beginning := _BEGINNINGS.get(text[offset])) is not None and (match := beginning.match(text, offset)):
        end = match.end()
        if text[offset] in "\"'" and (partial := _PARTIAL_ESCAPE.match(text, end)):
            end = partial.end()
    # The character at which the token could not go on is lost with it.
    lost = text[offset : end + 1]
    issues.append(Issue(offset, f"Syntax error: token recognition error at: '{lost}'"))
    return end + 1
