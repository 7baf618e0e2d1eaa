"""Names that look like one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3


def similar(name: str, known: Iterable[str]) -> list[str]:
    """The nearest first."""
    return get_close_matches(name, sorted({*known} - {name}), n=MOST)


def similar_words(name: str, known: Iterable[str]) -> str:
    """` (similar: data-1, data-2)`, or nothing."""
    near = similar(name, known)
    return f" (similar: {', '.join(near)})" if near else ""
