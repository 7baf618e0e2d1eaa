"""Plugins made on the spot: a name and the methods a case is about, as functions without `self`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mooring.engine import Profile
from mooring.framework import BoolArray, NodeRows, Normalizer, Plugin, Point, Rejection, Rejections
from mooring.framework.points import points_of
from mooring.state import State
from mooring.testing import a_node_object


def made(name: str, *, normalizer: Normalizer | None = None, **methods: Callable[..., Any]) -> Plugin:
    """A plugin with these extension points."""
    body = {method: staticmethod(function) for method, function in methods.items()}
    plugin: Plugin = type(name, (Plugin,), {**body, "name": name, "normalizer": normalizer})()
    return plugin


def rejecting(name: str, nodes: Mapping[str, Rejection], **more: Any) -> Plugin:
    """Rejects these nodes, one by one."""
    return made(name, filter=lambda _pod, node, _cycle: nodes.get(node.name), **more)


def rejecting_at_once(name: str, *reasons: tuple[set[str], str, bool | set[str]]) -> Plugin:
    """Rejects nodes by name, all at once: (names, reason, unresolvable or where)."""

    def filter_nodes(pod: Any, nodes: Any, cycle: Any) -> Any:
        for names, reason, unresolvable in reasons:
            is_final = unresolvable if isinstance(unresolvable, bool) else among(unresolvable, nodes)
            yield Rejections(among(names, nodes), reason, is_final)

    return made(name, filter_nodes=filter_nodes)


def among(names: set[str], nodes: NodeRows) -> BoolArray:
    return np.array([name in names for name in nodes.names])


def scoring(name: str, scores: Mapping[str, Any], **more: Any) -> Plugin:
    return made(name, score=lambda _pod, node, _cycle: scores[node.name], **more)


def a_profile(*plugins: Plugin | tuple[Plugin, int], percentage: int | None = None) -> Profile:
    weighted = [one if isinstance(one, tuple) else (one, 1) for one in plugins]
    points = {
        point: [(plugin, weight) for plugin, weight in weighted if point in points_of(type(plugin))] for point in Point
    }
    return Profile("test", points, percentage)


def a_state(*names: str) -> State:
    state = State()
    for name in names:
        state.set_node(a_node_object(name))
    return state
