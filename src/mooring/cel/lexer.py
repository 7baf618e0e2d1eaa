"""Characters to tokens, by CEL's lexical grammar.

The longest token wins. Nothing is read behind the first character that begins none: the parser refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is the operator or keyword itself, or one of int, uint, float, string, bytes, identifier, escaped,
    unreadable, EOF."""

    kind: str
    text: str
    offset: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens of the text, and an EOF: behind the first character that begins no token, or at the end."""
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            yield Token("unreadable", text[offset], offset)
            break
        kind, found = str(match.lastgroup), match.group()
        if kind == "operator" or (kind == "identifier" and found in _KEYWORDS):
            kind = found
        if kind != "hidden":
            yield Token(kind, found, offset)
        offset = match.end()
    yield Token("EOF", "", len(text))
