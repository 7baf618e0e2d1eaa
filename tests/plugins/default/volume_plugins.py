"""A plugin that knows some storage objects, and its verdict on a pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tests.plugins.verdicts import verdict

from mooring.framework import Code, NodeView, Plugin, Pod, Refusal, Skip
from mooring.objects import KubeObject
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin

P = TypeVar("P", bound=Plugin)
Verdict = str | tuple[Code, tuple[str, ...]] | None

SKIPPED = "skipped"


def plugin_with(cls: type[P], *objects: KubeObject, gates: Mapping[str, bool] | None = None, **arguments: Any) -> P:
    """The plugin, in a cluster with these objects."""
    services = Services(gates=gates)
    for item in objects:
        services.objects(type(item)).put(item)
    return a_plugin(cls, services, **arguments)


def verdict_of(plugin: Any, pod: Pod, node: NodeView | None = None, *, others: Sequence[NodeView] = ()) -> Verdict:
    """The plugin's verdict on a pod and node: SKIPPED, a verdict of pre_filter or filter, or None if it passes.

    Both forms run, and must agree.
    """
    node = node or a_node()
    cluster = a_cluster(node, *others)
    cycle = a_cycle(pod, cluster)
    first = plugin.pre_filter(pod, cycle)
    if isinstance(first, Skip):
        return SKIPPED
    if isinstance(first, Refusal):
        return verdict(first)
    view = cluster.node(node.name)
    plain = verdict(plugin.filter(pod, view, cycle))
    given = [each for each in plugin.filter_nodes(pod, cluster.nodes, cycle) if each.mask[0]]
    at_once = (
        (Code.UNRESOLVABLE if given[0].unresolvable else Code.UNSCHEDULABLE, tuple(each.reason for each in given))
        if given
        else None
    )
    assert at_once == plain
    return plain
