"""Making a case small while something about it stays true.

List items and fields are left out, many at first and then one by one, until nothing more can go. What identifies an
object stays, because a case without names means something else.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]

MOST_TRIALS = 5_000
"""After so many tries the case is small enough."""

KEPT_FIELDS = frozenset({"apiVersion", "kind", "metadata", "name", "namespace", "uid", "spec", "status"})
"""Of the fields of objects; and a pod has containers."""
KEPT_FULL = frozenset({"containers", "profiles"})
"""Lists that keep one item."""

Path = tuple[str | int, ...]


class Shrinker:
    """Tries smaller cases as long as they are still interesting."""

    def __init__(self, is_interesting: Callable[[Json], bool], most: int = MOST_TRIALS) -> None:
        self._is_interesting = is_interesting
        self._left = most

    def shrink(self, case: Json) -> Json:
        """The smallest case that was found. The case given is not changed."""
        case = self._without_configuration(copy.deepcopy(case))
        size = None
        while size != (size := _size(case)) and self._left > 0:
            case = self._smaller_list(case, ("objects",))
            for path in sorted(_paths(case), key=len):
                case = self._smaller_at(case, path)
        return case

    def _without_configuration(self, case: Json) -> Json:
        for part in ("config", "featureGates"):
            without = {key: value for key, value in case.items() if key != part}
            if part == "config":
                without["config"] = None
            if without != case and self._holds(without):
                case = without
        return case

    def _smaller_at(self, case: Json, path: Path) -> Json:
        """Without what is there, or with less in it."""
        try:
            found = _at(case, path)
        except (KeyError, IndexError):
            return case  # gone with something larger
        key = path[-1]
        if isinstance(key, str) and key not in KEPT_FIELDS | KEPT_FULL:
            without: Json = _replaced(case, path[:-1], {k: v for k, v in _at(case, path[:-1]).items() if k != key})
            if self._holds(without):
                return without
        return self._smaller_list(case, path) if isinstance(found, list) else case

    def _smaller_list(self, case: Json, path: Path) -> Json:
        """Runs of items go, halves first."""
        items = _at(case, path)
        fewest = int(path[-1] in KEPT_FULL)
        run = len(items)
        while run >= 1 and len(items) > fewest:
            start = 0
            while start < len(items):
                fewer = items[:start] + items[start + run :]
                if len(fewer) >= fewest and self._holds(smaller := _replaced(case, path, fewer)):
                    case, items = smaller, fewer
                else:
                    start += run
            run //= 2
        return case

    def _holds(self, case: Json) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        return self._is_interesting(case)


def _paths(case: Json) -> Iterator[Path]:
    """Everything inside the objects, the pod and the configuration that may go or get smaller."""
    for part in ("config", "pod"):
        yield from _below(case.get(part), (part,))
    for number, item in enumerate(case["objects"]):
        yield from _below(item, ("objects", number))


def _below(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from _below(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _below(inner, (*path, number))


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _replaced(value: Any, path: Path, new: Any) -> Any:
    """A copy with something else at the path; what is not on the path is shared."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    changed[step] = _replaced(value[step], rest, new)
    return changed


def _size(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_size(each) for each in inner)
