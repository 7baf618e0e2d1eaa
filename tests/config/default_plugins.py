"""Registries for configurations: the default plugins, and plugins of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from mooring.framework import Args, Meta, Plugin, Point
from mooring.framework.registry import Registry
from mooring.plugins.catalogue import catalogue

ENQUEUE, SORT, PRE_FILTER, FILTER = Point.PRE_ENQUEUE, Point.QUEUE_SORT, Point.PRE_FILTER, Point.FILTER
POST_FILTER, PRE_SCORE, SCORE, RESERVE = Point.POST_FILTER, Point.PRE_SCORE, Point.SCORE, Point.RESERVE
PRE_BIND, BIND = Point.PRE_BIND, Point.BIND

DEFAULTS = {entry.name: entry for entry in catalogue() if entry.source == "default"}


class LabelArgs(Args):
    label_key: str = "score-by-label"
    keep_percent: Annotated[int, Meta(ge=0, le=100)] = 10


def a_plugin(name: str, points: Sequence[Point], args: type[Args] | None = None, **attributes: Any) -> type[Plugin]:
    """A plugin class with the methods of these points."""

    def one(self: Any, pod: Any) -> None: ...
    def two(self: Any, pod: Any, cycle: Any) -> None: ...
    def three(self: Any, pod: Any, node: Any, cycle: Any) -> None: ...
    async def awaited(self: Any, pod: Any, node: Any, cycle: Any) -> None: ...
    def with_args(self: Any, args: Any) -> None: ...

    shapes: dict[Point, Any] = {ENQUEUE: one, SORT: one, PRE_FILTER: two}
    shapes |= dict.fromkeys((PRE_BIND, BIND, Point.POST_BIND), awaited)
    methods = {point.methods[0]: shapes.get(point, three) for point in points}
    if args is not None:
        with_args.__annotations__ = {"args": args, "return": None}
        methods["__init__"] = with_args
    return type(name, (Plugin,), {"name": name, **methods, **attributes})


def a_registry(*extra: type[Plugin], without: Sequence[str] = ()) -> Registry:
    """All default plugins (but some), and more."""
    registry = Registry()
    for name, entry in DEFAULTS.items():
        if name not in without:
            registry.add(entry.cls, "default")
    for cls in extra:
        registry.add(cls, "test")
    return registry


SCORE_BY_LABEL = a_plugin("ScoreByLabel", [SCORE], LabelArgs)
SAMPLE = a_plugin("sample2", [FILTER, PRE_SCORE])
OTHER_SORT = a_plugin("OtherSort", [SORT])
EVERYTHING = a_registry(SCORE_BY_LABEL, SAMPLE, OTHER_SORT)
