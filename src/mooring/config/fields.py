"""Reading the fields of one mapping strictly: each has a type, and what is left over is unknown.

A null field is an absent one. A wrong type is reported and reads as absent, so that the rest is still checked.
"""

from __future__ import annotations

import base64
import binascii

from mooring.base.documents import BOOLEAN_WORDS, Tree
from mooring.base.durations import duration_seconds
from mooring.base.errors import did_you_mean
from mooring.config.problems import Problems


class Fields:
    """The fields of a mapping, taken one by one."""

    def __init__(self, tree: Tree, problems: Problems) -> None:
        self.tree = tree
        self._problems = problems
        self._taken: set[str] = set()
        self.is_mapping = isinstance(tree.value, dict)
        if not self.is_mapping and tree.value is not None:
            problems.error(tree, f"must be a mapping, got {tree.shown()}")

    def take(self, name: str) -> Tree | None:
        """The field, whatever it holds."""
        self._taken.add(name)
        return self.tree.get(name)

    def text(self, name: str) -> str | None:
        found = self.take(name)
        if found is None:
            return None
        if isinstance(found.value, str):
            return found.value
        is_number = isinstance(found.value, int | float) and not isinstance(found.value, bool)
        hint = f'; write "{found.value}"' if is_number else ""
        self._problems.error(found, f"must be a string, got {found.shown()}{hint}")
        return None

    def truth(self, name: str) -> bool | None:
        found = self.take(name)
        if found is None:
            return None
        if isinstance(found.value, bool):
            return found.value
        self._problems.error(found, f"must be true or false, got {found.shown()}")
        return None

    def whole(self, name: str, *, bits: int = 32) -> int | None:
        found = self.take(name)
        if found is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int):
            self._problems.error(found, f"must be a whole number, got {found.shown()}")
            return None
        if not -(2 ** (bits - 1)) <= found.value < 2 ** (bits - 1):
            self._problems.error(found, f"must fit in {bits} bits, got {found.shown()}")
            return None
        return found.value

    def number(self, name: str) -> float | None:
        found = self.take(name)
        if found is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int | float):
            self._problems.error(found, f"must be a number, got {found.shown()}")
            return None
        return float(found.value)

    def duration(self, name: str) -> float | None:
        """A Go duration, in seconds."""
        self._taken.add(name)
        found = self.tree.fields.get(name)
        if found is None:
            return None
        # Null is no duration: Go reads it as an empty one.
        seconds = duration_seconds(found.value) if isinstance(found.value, str) else None
        if seconds is None:
            self._problems.error(found, f'must be a duration such as "15s" or "1m30s", got {found.shown()}')
        return seconds

    def data(self, name: str) -> bytes | None:
        """Bytes, written in base64."""
        found = self.text(name)
        if found is None:
            return None
        try:
            return base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            self._problems.error(self.tree.fields[name], "must be base64")
            return None

    def section(self, name: str) -> Fields:
        """The fields of a mapping inside; those of an empty one where it is absent."""
        found = self.take(name)
        return Fields(found or Tree({}, self.tree.below(name), self.tree.line), self._problems)

    def items(self, name: str) -> list[Tree]:
        found = self.take(name)
        if found is None:
            return []
        if not isinstance(found.value, list):
            self._problems.error(found, f"must be a list, got {found.shown()}")
        return found.items

    def finish(self) -> None:
        """Report the fields that were not read."""
        for name, tree in self.tree.fields.items():
            if name not in self._taken:
                unknown_field(tree, name, self._taken, self._problems)


def unknown_field(tree: Tree, name: str, known: set[str], problems: Problems) -> None:
    hint = did_you_mean(name, known)
    if not hint:
        hint = f" Known here: {', '.join(sorted(known))}." if known else " No fields are known here."
    if (words := BOOLEAN_WORDS.get(name)) is not None:
        hint = f" YAML reads the keys {words} without quotes as {name}: quote the key.{hint}"
    problems.error(tree, f'unknown field "{name}".{hint}')
