"""Groups that cannot be placed do not keep the gangs of other tenants from their nodes. On virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulator.test_gangs_and_quotas import GANGS

from mooring.framework import Pod
from mooring.objects.meta import ObjectMeta
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup, CoschedulingGroupSpec
from mooring.simulator import Arrival, Cluster, simulate
from mooring.testing import a_pod
from mooring.testing.builders import a_node_object

NODES, CPU = 10, 4
NOWHERE = {"none": "such"}
ENDS_AT = 20.0
"""When a running pod makes room for the last members of the gang."""


def a_group(name: str, namespace: str, members: int, created: int, **spec: Any) -> CoschedulingGroup:
    created_at = f"2026-01-01T00:{created // 60:02}:{created % 60:02}Z"
    return CoschedulingGroup(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}-{name}", creation_timestamp=created_at),
        spec=CoschedulingGroupSpec(min_member=members, **spec),
    )


def members(group: CoschedulingGroup, count: int, *, first: int = 0, **spec: Any) -> list[Pod]:
    name, namespace = group.name, group.namespace
    return [
        a_pod(f"{name}-{at}", namespace=namespace, uid=f"{namespace}-{name}-{at}", labels={GROUP_LABEL: name}, **spec)
        for at in range(first, first + count)
    ]


Hostile = tuple[list[CoschedulingGroup], list[Pod]]


def nowhere(count: int, **spec: Any) -> Hostile:
    """Groups of one pod that no node takes."""
    groups = [a_group(f"g{at}", "evil", 1, at) for at in range(count)]
    return groups, [pod for group in groups for pod in members(group, 1, node_selector=NOWHERE, **spec)]


def too_large(count: int, **spec: Any) -> Hostile:
    """Groups of pods that would fit one by one where others release their nodes, and never together."""
    groups = [a_group(f"g{at}", "evil", 2 * NODES, at) for at in range(count)]
    return groups, [pod for group in groups for pod in members(group, 2 * NODES, cpu=str(CPU), **spec)]


def nearly_placed(count: int) -> Hostile:
    """Groups of which all but one member wait on their nodes, for ever."""
    groups = [a_group(f"g{at}", "evil", 10, at, schedule_timeout_seconds=10**9) for at in range(count)]
    placed = [pod for group in groups for pod in members(group, 9, cpu="1m")]
    return groups, placed + [pod for group in groups for pod in members(group, 1, first=9, node_selector=NOWHERE)]


def bound_at(hostile: Hostile) -> float | None:
    """When the gang is bound: at once all but two of its pods fit, the others when a running pod ends."""
    gang = a_group("train", "victim", NODES * CPU, 1800, schedule_timeout_seconds=600)
    nodes = [a_node_object(f"node-{at}", cpu=str(CPU), pods=1000) for at in range(NODES)]
    running = a_pod("before", namespace="victim", uid="before", cpu="2")
    arrivals = [Arrival(0.0, running, ENDS_AT)]
    arrivals += [Arrival(1.0, pod, None) for pod in hostile[1]]
    arrivals += [Arrival(1.0, pod, None) for pod in members(gang, NODES * CPU, cpu="990m")]
    cluster = Cluster(nodes, objects=[*hostile[0], gang])
    result = simulate(cluster, arrivals, GANGS, influence=False, attempt_timeout=0)
    bound = [pod.bound_at for pod in result.pods if pod.namespace == "victim" and pod.name.startswith("train")]
    return None if None in bound else max(each for each in bound if each is not None)


HOSTILE: dict[str, Hostile] = {
    "none": ([], []),
    "few that no node takes": nowhere(3),
    "many that no node takes": nowhere(60),
    "that no node takes, of higher priority": nowhere(20, priority=10),
    "too large for all nodes together": too_large(5),
    "too large for all nodes together, of higher priority": too_large(5, priority=10),
    "that wait for a last member": nearly_placed(3),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_gang_is_bound_soon_beside_groups(hostile: Hostile) -> None:
    moment = bound_at(hostile)
    assert moment is not None
    assert ENDS_AT <= moment < ENDS_AT + 15
