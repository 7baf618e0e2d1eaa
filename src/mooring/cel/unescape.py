"""String and bytes literals to what they mean."""

from __future__ import annotations

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_BAD = "unable to unescape string"
_BAD_POINT = "invalid unicode code point"


class BadLiteral(ValueError):
    """The escapes of a literal stand for nothing."""


def unquoted(literal: str) -> tuple[str, bool]:
    """What is between the quotes, with all line ends as `\\n`, and whether it is raw."""
    literal = literal.replace("\r\n", "\n").replace("\r", "\n")
    raw = literal[0] in "rR"
    literal = literal[1:] if raw else literal
    width = 3 if len(literal) >= 6 and literal[:3] in ('"""', "'''") else 1
    return literal[width:-width], raw


def text_of(literal: str) -> str:
    """A string literal's value."""
    body, raw = unquoted(literal)
    if raw or "\\" not in body:
        return body
    out: list[str] = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out.append(body[at])
            at += 1
            continue
        point, at = _escape(body, at)
        if isinstance(point, int):
            if 0xD800 <= point <= 0xDFFF or point > 0x10FFFF:
                raise BadLiteral(_BAD_POINT)
            out.append(chr(point))
        else:
            out.append(point)
    return "".join(out)


def bytes_of(literal: str) -> bytes:
    """A bytes literal's value: octal and hex escapes are bytes, everything else is UTF-8."""
    body, raw = unquoted(literal)
    if raw or "\\" not in body:
        return body.encode()
    out = bytearray()
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out += body[at].encode()
            at += 1
            continue
        if body[at + 1] in "uU":
            raise BadLiteral(_BAD)
        point, at = _escape(body, at)
        out += bytes([point]) if isinstance(point, int) else point.encode()
    return bytes(out)


def _escape(body: str, at: int) -> tuple[int | str, int]:
    """The code point of a numeric escape, or the character of a named one, and where the text goes on."""
    kind = body[at + 1]
    if kind in _SIMPLE:
        return _SIMPLE[kind], at + 2
    if (digits := {"x": 2, "X": 2, "u": 4, "U": 8}.get(kind)) is not None:
        return int(body[at + 2 : at + 2 + digits], 16), at + 2 + digits
    return int(body[at + 1 : at + 4], 8), at + 4
