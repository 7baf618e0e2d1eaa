"""TopologicalSort: pods of one AppGroup in the order of its workloads, others by priority."""

from __future__ import annotations

from mooring.framework import QueuedPod
from mooring.objects import ObjectMeta
from mooring.plugins.community.network_aware import TopologicalSort
from mooring.plugins.community.network_aware.app_groups import (
    GROUP_LABEL,
    WORKLOAD_LABEL,
    AppGroup,
    AppGroupOrder,
    AppGroupStatus,
    AppGroupWorkload,
)
from mooring.testing import Services, a_plugin, a_pod


def a_group(*selectors, name="shop", namespace="default"):
    """A group whose workloads come in this order, listed as they are given."""
    order = [
        AppGroupOrder(workload=AppGroupWorkload(selector=selector), index=index)
        for index, selector in enumerate(selectors, 1)
    ]
    return AppGroup(metadata=ObjectMeta(name=name, namespace=namespace), status=AppGroupStatus(topology_order=order))


def queued(workload, *, group="shop", priority=0, since=0.0):
    labels = {GROUP_LABEL: group, WORKLOAD_LABEL: workload} if group else {}
    return QueuedPod(a_pod(workload, labels=labels, priority=priority), since)


def order(*pods, groups=(), **arguments):
    plugin = a_plugin(TopologicalSort, Services(objects={AppGroup: groups}), **arguments)
    keys = [plugin.sort_key(each) for each in pods]
    return [each.pod.name for _, each in sorted(zip(keys, pods, strict=True), key=lambda pair: pair[0])]


def test_pods_of_a_group_come_in_the_order_of_their_workloads():
    pods = [queued("web", priority=9), queued("api"), queued("db", since=9.0)]
    assert order(*pods, groups=[a_group("db", "api", "web")]) == ["db", "api", "web"]


def test_equal_workloads_come_by_priority_and_waiting_time():
    pods = [queued("api", since=2.0), queued("api", since=1.0), queued("api", priority=1, since=3.0)]
    keys = a_plugin(TopologicalSort, Services(objects={AppGroup: [a_group("api")]}))
    first = min(pods, key=keys.sort_key)
    assert first.priority == 1


def test_pods_of_other_groups_or_none_come_by_priority():
    pods = [queued("api"), queued("web", group="other", priority=2), queued("plain", group="", priority=1)]
    assert order(*pods, groups=[a_group("api")]) == ["web", "plain", "api"]


def test_a_list_in_any_order_is_read():
    pods = [queued("a"), queued("c"), queued("b")]
    assert order(*pods, groups=[a_group("c", "b", "a")]) == ["c", "b", "a"]


def test_scheduler_plugins_misses_workloads_in_a_list_that_is_not_sorted():
    """A binary search: `c` and `a` are not found, and what is not listed comes first."""
    plugin = a_plugin(
        TopologicalSort, Services(objects={AppGroup: [a_group("c", "b", "a")]}), compatibility="scheduler-plugins"
    )
    assert plugin.sort_key(queued("a")).place == plugin.sort_key(queued("c")).place == -1


def test_in_scheduler_plugins_equal_pods_sort_before_each_other():
    services = Services(objects={AppGroup: [a_group("api")]})
    compatible = a_plugin(TopologicalSort, services, compatibility="scheduler-plugins")
    one, other = compatible.sort_key(queued("api")), compatible.sort_key(queued("api"))
    assert one < other
    assert other < one
    ours = a_plugin(TopologicalSort, services)
    assert not ours.sort_key(queued("api")) < ours.sort_key(queued("api"))


def test_a_group_that_does_not_exist_orders_nothing():
    for compatibility in ("mooring", "scheduler-plugins"):
        assert order(queued("a"), queued("b", priority=1), compatibility=compatibility) == ["b", "a"]


def test_groups_are_looked_for_in_the_namespaces_in_order():
    groups = [a_group("b", "a", namespace="second"), a_group("a", "b", namespace="first")]
    assert order(queued("a"), queued("b"), groups=groups, namespaces=["first", "second"]) == ["a", "b"]
    assert order(queued("a"), queued("b"), groups=groups, namespaces=["second", "first"]) == ["b", "a"]
