"""Untrusted text, in a form that a terminal and a log show as it is.

Names, labels, expressions and messages come from a cluster, from files and from other processes. A terminal executes
the control sequences in them (clear the screen, set the title, write to the clipboard), and characters without a shape
of their own make one text look like another. Here they are replaced by escapes as Go's %q writes them: `\\x1b`,
`\\u202e`.

Replaced are control characters (C0, DEL, C1), format characters (directions of writing, zero width, tags), separators
of lines and paragraphs, unassigned and private characters, halves of surrogate pairs, all spaces but the ordinary one,
and letters and marks that show nothing. What has a shape stays: é, 中文, 👍, ❤️. A sequence of emoji joined by a zero
width joiner is shown as its parts and the joiner: the joiner shows nothing, also between letters.

A backslash is doubled where the text would otherwise read as if it held an escape, so no two texts look alike.
"""

from __future__ import annotations

import re
from typing import Any

# Printable as Unicode counts, and yet nothing to see. U+FE0E and U+FE0F stay: they choose between ✔ and ✔️.
_SHOW_NOTHING = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef"
_SHOWS_NOTHING = re.compile(f"[{_SHOW_NOTHING}]")
_LIKE_AN_ESCAPE = re.compile(r"\\[\\nrtxuU]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """The text on one line, with escapes for what would not be seen."""
    if _is_seen(text) and not ("\\" in text and _LIKE_AN_ESCAPE.search(text)):
        return text
    return text.translate(_ESCAPES)


def visible_lines(text: str) -> str:
    """The same for text whose line breaks and tabs are ours."""
    if text.isprintable() and "\\" not in text and text.isascii():
        return text
    return "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def visible_values(value: Any) -> Any:
    """Plain data with every text in it made visible, keys included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_values(key): visible_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [visible_values(part) for part in value]
    return value


def visible_json(text: str) -> str:
    """JSON, in which whatever would not be seen stands within strings, with JSON's escapes for it."""
    return text if _is_seen(text) else text.translate(_JSON_ESCAPES)


def visible_yaml(text: str) -> str:
    """YAML, in which whatever would not be seen stands within double quotes, with YAML's escapes for it."""
    return text if _is_seen(text) else text.translate(_YAML_ESCAPES)


def is_visible(text: str) -> bool:
    """Whether all of it is seen; line breaks are not."""
    return _is_seen(text)


def _is_seen(text: str) -> bool:
    return text.isprintable() and (text.isascii() or not _SHOWS_NOTHING.search(text))


def _go_escape(character: str) -> str:
    code = ord(character)
    if code < 0x80:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"


def _yaml_escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


class _Escapes(dict[int, str]):
    """For `str.translate`. Nothing is kept: what others write must not fill a table."""

    def __init__(self, escape: Any, **kept: str) -> None:
        super().__init__({ord(character): shown for character, shown in kept.items()})
        self._escape = escape

    def __missing__(self, code: int) -> str:
        character = chr(code)
        return character if _is_seen(character) else str(self._escape(character))


_ESCAPES = _Escapes(_go_escape, **{"\\": "\\\\"})
_JSON_ESCAPES = _Escapes(_json_escape, **{"\n": "\n"})
_YAML_ESCAPES = _Escapes(_yaml_escape, **{"\n": "\n"})
