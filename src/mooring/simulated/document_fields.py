"""Reads the fields of a short document of ours, such as GeneratedCluster. All mistakes are noted, each with its path.

A field that is wrong is read as its default: reading goes on, and the next mistake is found as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

from mooring.base.documents import misread
from mooring.base.durations import duration_seconds
from mooring.base.errors import did_you_mean
from mooring.objects.names import dns_subdomain, label_value, qualified_name
from mooring.objects.quantity import exact

FieldPath: TypeAlias = tuple[str | int, ...]
"""DocumentFields and items from a document down to a value."""
Mistake: TypeAlias = tuple[FieldPath, str]
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class DocumentFields:
    """The fields of a mapping. Those that were not read are unknown ones: `finish` notes them."""

    def __init__(self, value: Mapping[str, Any], mistakes: list[Mistake], path: FieldPath = ()) -> None:
        self._value = value
        self._mistakes = mistakes
        self._path = path
        self._read: list[str] = []

    def get(self, name: str) -> Any:
        """The value; None: it is not there."""
        self._read.append(name)
        return self._value.get(name)

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int | None = None) -> int | None:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least or (most and value > most):
            bound = f"from {least:,} to {most:,}" if most else f"of at least {least}"
            self.mistake(name, f"must be a whole number {bound}, got {quoted(value)}")
            return default
        return value

    def number(self, name: str, default: float, *, most: float = math.inf, is_positive: bool = False) -> float:
        """Of at least 0."""
        value = self.get(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= most or not math.isfinite(value) or (is_positive and not value):
            bound = "more than 0" if is_positive else f"0 to {most:g}" if math.isfinite(most) else "0 or more"
            self.mistake(name, f"must be a number, {bound}, got {quoted(value)}")
            return default
        return float(value)

    def seconds(self, name: str, default: float | None = None, *, is_positive: bool = False) -> float | None:
        """A duration such as 90s or 1h30m, or a number of seconds."""
        value = self.get(name)
        return default if value is None else self.seconds_of(name, value, default, is_positive=is_positive)

    def seconds_of(self, name: str, value: Any, default: float | None, *, is_positive: bool = False) -> float | None:
        found: Any = duration_seconds(value) if isinstance(value, str) else value
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not 0 <= found < math.inf or (is_positive and not found):
            bound = "more than 0" if is_positive else "0 or more"
            self.mistake(name, f"must be a duration such as 90s or 1h30m, {bound}, got {quoted(value)}")
            return default
        return float(found)

    def text(self, name: str, default: str = "") -> str:
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.mistake(name, f"must be text, got {misread(value)}")
            return default
        return value

    def name_part(self, name: str, default: str = "") -> str:
        """What begins the names of objects."""
        value = self.text(name, default)
        if value and dns_subdomain(f"{value}1"):
            message = "must begin a valid name (lower case letters, digits, '-' and '.')"
            self.mistake(name, f"{message}, got {quoted(value)}")
            return default
        return value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        value = self.get(name)
        if value is None:
            return default
        if value not in choices:
            near = did_you_mean(value, choices) if isinstance(value, str) else ""
            self.mistake(name, f"must be one of {', '.join(choices)}, got {quoted(value)}.{near}")
            return default
        return str(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.mistake(name, f"must be a mapping, got {quoted(value)}")
            return {}
        return dict(value)

    def fields(self, name: str) -> DocumentFields:
        """Those of a mapping; empty where it is not there."""
        return DocumentFields(self.mapping(name), self._mistakes, (*self._path, name))

    def items(self, name: str) -> Iterator[DocumentFields]:
        """Those of each mapping of a list."""
        value = self.get(name)
        if value is not None and not isinstance(value, list | tuple):
            self.mistake(name, f"must be a list, got {quoted(value)}")
            return
        for index, item in enumerate(value or ()):
            if isinstance(item, Mapping):
                yield DocumentFields(item, self._mistakes, (*self._path, name, index))
            else:
                self._mistakes.append(((*self._path, name, index), f"must be a mapping, got {quoted(item)}"))

    def texts(self, name: str) -> list[str] | None:
        """A list of label values; None: it is not there."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            self.mistake(name, f"must be a list of texts, got {quoted(value)}")
            return None
        return list(value)

    def quantities(self, name: str) -> dict[str, str]:
        """Resources and their amounts."""
        found = self.check(name, check_resources) or {}
        return {str(resource): str(amount) for resource, amount in found.items()}

    def labels(self, name: str, *, are_lists: bool = False) -> dict[str, tuple[str, ...]]:
        """Labels and their values; with `are_lists`, a label may have several."""
        found = {}
        for key, value in self.mapping(name).items():
            values = tuple(value) if are_lists and isinstance(value, list | tuple) and value else (value,)
            wrong = [*qualified_name(key), *(each for text in values for each in _wrong_value(text))]
            if wrong:
                self._mistakes.append(((*self._path, name, key), wrong[0]))
            else:
                found[key] = values
        return found

    def check(self, name: str, check: Callable[[Mapping[str, Any], FieldPath], Iterator[Mistake]]) -> Any:
        """The value, if the check finds no mistake in it."""
        value = self.get(name)
        mistakes = list(check(self._value, (name,))) if value is not None else []
        self._mistakes += [((*self._path, *path), message) for path, message in mistakes]
        return None if mistakes else value

    def mistake(self, name: str, message: str) -> None:
        """Note what is wrong with a field."""
        self._mistakes.append(((*self._path, name), message))

    def finish(self, kind: str) -> None:
        """All fields were read: others are mistakes."""
        for name in self._value:
            if name not in self._read:
                self.mistake(str(name), f"is not a field of {kind}.{did_you_mean(str(name), self._read)}")


def quoted(value: object) -> str:
    """A value as messages show it."""
    return "nothing" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


def _wrong_value(value: Any) -> list[str]:
    return label_value(value) if isinstance(value, str) else [f"must be text, got {misread(value)}"]


def check_taints(value: Mapping[str, Any], path: FieldPath) -> Iterator[Mistake]:
    """The field `taints` of a document, which the path ends with."""
    taints = value["taints"]
    if not isinstance(taints, list):
        yield path, f"must be a list of taints, got {quoted(taints)}"
        return
    for index, taint in enumerate(taints):
        if not isinstance(taint, dict):
            yield (*path, index), f"must be a taint with key and effect, got {quoted(taint)}"
            continue
        if not isinstance(taint.get("key"), str) or not taint["key"]:
            yield (*path, index, "key"), "is missing"
        if taint.get("effect") not in TAINT_EFFECTS:
            yield (
                (*path, index, "effect"),
                f"must be one of {', '.join(TAINT_EFFECTS)}, got {quoted(taint.get('effect'))}",
            )


def check_resources(value: Mapping[str, Any], path: FieldPath) -> Iterator[Mistake]:
    """Resources and their amounts, where the path leads to."""
    resources: Any = value
    for step in path:
        resources = resources.get(step) if isinstance(resources, dict) else None
    if resources is None:
        return
    if not isinstance(resources, dict):
        yield path, f"must be resources and their amounts, got {quoted(resources)}"
        return
    for name, amount in resources.items():
        try:
            if isinstance(amount, bool) or exact(str(amount)) < 0:
                yield (*path, name), f"must be an amount of at least 0, got {quoted(amount)}"
        except ValueError:
            yield (*path, name), f'must be a quantity such as "4", "500m" or "16Gi", got {quoted(amount)}'
