"""What a running scheduler cannot change: each field by name, with what to do.

Profiles, plugins, their arguments and weights, backoffs and percentageOfNodesToScore can change while it runs. How it
reaches the API server, who leads, what it serves, which extenders are sent what and how the queue is ordered cannot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec

from mooring.base.errors import Problem
from mooring.config import Configuration
from mooring.framework import Point
from mooring.framework.registry import Registry

SECTIONS = ("leader_election", "client_connection")
FIELDS = ("extenders", "enable_profiling", "enable_contention_profiling", "delay_cache_until_active")
NOT_WRITTEN = ("explicit",)
"""Fields about how a file was written, not what it means."""


def needs_restart(old: tuple[Configuration, Registry], new: tuple[Configuration, Registry]) -> list[Problem]:
    """Every difference that only a restart can bring about."""
    return [*_fields(old[0], new[0]), *_queue_sort(old, new)]


def _fields(old: Configuration, new: Configuration) -> Iterator[Problem]:
    for name in SECTIONS:
        before, after = getattr(old, name), getattr(new, name)
        for field in dataclasses.fields(before):
            if field.name not in NOT_WRITTEN:
                yield from _field(
                    f"{_wire(name)}.{_wire(field.name)}", getattr(before, field.name), getattr(after, field.name)
                )
    for name in FIELDS:
        yield from _field(_wire(name), getattr(old, name), getattr(new, name))


def _field(path: str, before: Any, after: Any) -> Iterator[Problem]:
    if before != after:
        change = "" if isinstance(after, tuple) else f" ({_shown(before)} → {_shown(after)})"
        yield _restart(path, change)


def _queue_sort(old: tuple[Configuration, Registry], new: tuple[Configuration, Registry]) -> Iterator[Problem]:
    """All profiles of a configuration have the same; the first one is compared."""
    (before, was), (after, now) = _sorter(*old), _sorter(*new)
    path = "profiles[0].plugins.queueSort"
    if before[0] != after[0]:
        yield _restart(path, f" ({before[0]} → {after[0]})")
    elif was is not now:
        yield _restart(path, f": the code of {after[0]} has changed")
    elif before[1] != after[1]:
        yield _restart("profiles[0].pluginConfig", f": the arguments of {after[0]}, which orders the queue,")


def _sorter(configuration: Configuration, registry: Registry) -> tuple[tuple[str, bytes], type | None]:
    profile = configuration.profiles[0]
    name = profile.points[Point.QUEUE_SORT][0].name
    entry = registry.get(name)
    return (name, msgspec.json.encode(profile.args.get(name))), entry.cls if entry is not None else None


def _restart(path: str, change: str) -> Problem:
    return Problem(path, f"cannot change while the scheduler runs{change}; restart it, or put the old value back")


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _wire(name: str) -> str:
    """As the file calls the field."""
    first, *others = name.removesuffix("_seconds").split("_")
    return first + "".join(other.capitalize() for other in others)
