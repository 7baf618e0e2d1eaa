"""Fresh cases of the families that have no generator: variations of the recorded ones.

A value is replaced by one that stands at the same place of another case of the family, so that it is one that an API
server admits; objects that nothing names are left out. Names stay, for others refer to them, and so do the priorities
and times by which an order is unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from mooring_conformance.cases import community_files, family_of, read
from mooring_conformance.generate.dice import Dice, Json

NAMES = frozenset({"apiVersion", "kind", "name", "namespace", "uid", "generateName", "image", "resourceVersion"})
REFERENCES = frozenset({"nodeName", "schedulerName", "podGroupName", "priorityClassName", "workload", "dependencies"})
OF_THE_CASE = frozenset({"queue", "steps", "featureGates", "runs"})
ADDRESSES = frozenset({"watcherAddress", "WatcherAddress"})
ORDER = frozenset({"priority", "startTime", "creationTimestamp"})
UNVARIED = NAMES | REFERENCES | OF_THE_CASE | ADDRESSES | ORDER
SHARES = (0.02, 0.1, 0.3)
"""Of the values of a case that are replaced."""
DROPPED = 0.3
"""How many cases lose an object."""

Place = tuple[str, ...]
"""Keys from the case down; `*` for an item of a list, and the kind of an object for itself."""


class Variations:
    """Of the recorded cases of one family."""

    def __init__(self, cases: list[Json]) -> None:
        self._cases = cases
        pools: dict[Place, dict[Any, None]] = {}
        for case in cases:
            for place, _, _, value in _values(case):
                pools.setdefault(place, {})[value] = None
        self._pools = {place: list(values) for place, values in pools.items()}

    def case(self, dice: Dice, name: str) -> Json:
        """One more."""
        varied: Json = msgspec.json.decode(msgspec.json.encode(dice.choice(self._cases)))
        share = dice.choice(SHARES)
        for place, holder, key, _ in list(_values(varied)):
            if dice.chance(share):
                holder[key] = dice.choice(self._pools[place])
        if dice.chance(DROPPED):
            _drop_one(dice, varied)
        return varied | {"name": name}


@cache
def variations(family: str) -> Variations:
    (file,) = [each for each in community_files() if family_of(each) == family]
    return Variations([msgspec.json.decode(line)["case"] for line in read(file)])


def varied_families() -> list[str]:
    """Those whose fresh cases are variations; another recorder than kube-scheduler's decides them."""
    return [family_of(file) for file in community_files()]


def _values(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any, Any, Any]]:
    """All that may be replaced: its place, what holds it and by which key, and what it is."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if key in UNVARIED:
            continue
        step = inner.get("kind", "*") if isinstance(value, list) and isinstance(inner, dict) else key
        below = (*place, "*" if isinstance(step, int) else step)
        if isinstance(inner, dict | list):
            yield from _values(inner, below)
        elif place:
            yield below, value, key, inner


def _drop_one(dice: Dice, case: Json) -> None:
    mentioned = Counter(name for text in _texts(case) for name in {text, text.rpartition("/")[2]})
    free = [item for item in case["objects"] if mentioned[item["metadata"]["name"]] == 1]
    if free:
        case["objects"].remove(dice.choice(free))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
