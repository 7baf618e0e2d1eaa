"""Building blocks of validation: checks of items, names, required fields and enumerations."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mooring.apiserver.documents import Document
from mooring.apiserver.status import MAX_ERRORS, FieldError, invalid_value, required, unsupported
from mooring.objects.names import NameRule

Check = Callable[[Document, str], list[FieldError]]
"""Validates an item at a path."""


def each(items: list[Any], path: str, *checks: Check) -> list[FieldError]:
    """All checks of all items, until there are enough errors to reject the object."""
    errors: list[FieldError] = []
    for index, item in enumerate(items):
        for check in checks:
            errors += check(item, f"{path}[{index}]")
        if len(errors) > MAX_ERRORS:
            break
    return errors


def broken(rule: NameRule, name: str, path: str) -> list[FieldError]:
    """The violations of a name rule, as errors of the field."""
    return [invalid_value(path, name, sentence) for sentence in rule(name)]


def named(field: str, rule: NameRule) -> Check:
    """The field holds a name that obeys the rule; a missing one is empty."""
    return lambda item, path: broken(rule, item.get(field, ""), f"{path}.{field}")


def filled(field: str, detail: str = "") -> Check:
    """The field is required."""
    return lambda item, path: [] if item.get(field) else [required(f"{path}.{field}", detail)]


def one_of(field: str, *allowed: str, optional: bool = False) -> Check:
    """The field has one of these values; an optional one may be missing or empty."""

    def check(item: Document, path: str) -> list[FieldError]:
        value = item.get(field) or ""
        is_right = value in allowed or (optional and not value)
        return [] if is_right else [unsupported(f"{path}.{field}", value, allowed)]

    return check


def repeats(
    items: list[Any], identity: Callable[[Document], Hashable], refusal: Callable[[Document, str], FieldError]
) -> Check:
    """Rejects every item that duplicates an earlier one."""
    first: dict[Hashable, Any] = {}
    for item in items:
        first.setdefault(identity(item), item)
    return lambda item, path: [] if first[identity(item)] is item else [refusal(item, path)]
