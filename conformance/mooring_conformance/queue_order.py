"""The order of waiting pods, by the queueSort plugin of a case, in the recorder's form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mooring.base.clock import parse_timestamp
from mooring.framework import Point, QueuedPod
from mooring_conformance.cases import Case
from mooring_conformance.comparing import Difference
from mooring_conformance.our_decision import Json
from mooring_conformance.situation import Situation


def queue_differences(case: Case, situation: Situation, expect: Json) -> Iterator[Difference]:
    """Where pods sort otherwise. A recorded crash is no order: only that ours returns one counts."""
    [(plugin, _)] = situation.points[Point.QUEUE_SORT]
    pods = {pod.key: pod for pod in situation.parts.pods}
    keys: list[Any] = []
    for entry in case.queue:
        first = parse_timestamp(entry.initial_attempt) if entry.initial_attempt else None
        queued = QueuedPod(pods[entry.pod], parse_timestamp(entry.timestamp), initial_attempt=first)
        keys.append(plugin.sort_key(queued))
    less = ["".join("1" if one < other else "0" for other in keys) for one in keys]
    if expect.get("result") == "panic":
        return
    for entry, ours, theirs in zip(case.queue, less, expect["less"], strict=True):
        if ours != theirs:
            yield Difference("less", entry.pod, ours, theirs, plugin.name)
    order = [case.queue[place].pod for place in _sorted(keys)]
    if order != expect["order"]:
        yield Difference("order", "", order, expect["order"], plugin.name)


def _sorted(keys: list[Any]) -> list[int]:
    """The places of the keys in order, by insertion, as Go sorts few: the order matters where keys contradict."""
    places: list[int] = []
    for place, key in enumerate(keys):
        at = place
        while at and key < keys[places[at - 1]]:
            at -= 1
        places.insert(at, place)
    return places
