"""Which part of a pod's spec is the large one: named when evaluating the pod takes too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mooring.framework import Pod


def largest_field(pod: Pod, paths: Sequence[str]) -> str:
    """The path with the most entries, with their number; "" if the pod has none of these fields.

    Paths are written as in a manifest: `spec.topologySpreadConstraints`, `spec.containers[*].ports`.
    """
    manifest = msgspec.to_builtins(pod)
    sizes = {path: sum(map(_entries, _values(manifest, path.split(".")))) for path in paths}
    path = max(sizes, key=sizes.__getitem__, default="")
    return f"{path} ({sizes[path]} {'entry' if sizes[path] == 1 else 'entries'})" if sizes.get(path) else ""


def _values(value: Any, steps: Sequence[str]) -> Iterable[Any]:
    """What stands at the path; several values where a step is written with `[*]`."""
    if not steps:
        yield value
        return
    name, is_each, _ = steps[0].partition("[*]")
    found = value.get(name) if isinstance(value, dict) else None
    for each in found or () if is_each else (found,):
        yield from _values(each, steps[1:])


def _entries(value: Any) -> int:
    """The items of a list, or of all lists in a structure."""
    if isinstance(value, (list, tuple)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_entries, value.values()))
    return 0 if value is None else 1
