"""Clusters to preempt in: nodes of 4 CPUs with pods of some priority on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import force_setattr

from mooring.base.clock import timestamp
from mooring.engine import Decision
from mooring.framework import Candidate, Plan, Pod
from mooring.objects import ObjectMeta
from mooring.objects.core import PodCondition
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector
from mooring.plugins.default.default_preemption import DefaultPreemption
from mooring.plugins.default.node_ports import NodePorts
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.plugins.default.pod_topology_spread import PodTopologySpread
from mooring.testing import Services, a_cluster, a_plugin, a_pod
from mooring.testing.cluster import Cluster

PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def a_running(
    name: str,
    priority: int = 0,
    *,
    cpu: str = "1",
    started: float | None = 0.0,
    going: bool = False,
    conditions: Iterable[PodCondition] = (),
    **more: Any,
) -> Pod:
    """A pod on a node: one CPU, priority 0, started at 0 (None: not yet), being deleted if it is `going`."""
    pod = a_pod(name, cpu=cpu, priority=priority, **more)
    force_setattr(pod.status, "start_time", None if started is None else timestamp(started))
    force_setattr(pod.status, "conditions", tuple(conditions))
    if going:
        force_setattr(pod.metadata, "deletion_timestamp", timestamp(1.0))
    return pod


def a_budget(
    name: str,
    allowed: int,
    labels: dict[str, str] | None,
    *,
    namespace: str = "default",
    disrupted: Iterable[str] = (),
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=None if labels is None else LabelSelector(match_labels=labels)),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted)),
    )


def a_preempting_cluster(*nodes: Any, budgets: Iterable[PodDisruptionBudget] = (), **args: Any) -> Cluster:
    services = Services(objects={PodDisruptionBudget: budgets})
    plugins = [NodeUnschedulable, NodePorts, NodeResourcesFit, PodTopologySpread]
    made: list[Any] = [a_plugin(cls, services) for cls in plugins]
    return a_cluster(*nodes, plugins=[*made, a_plugin(DefaultPreemption, services, **args)], services=services)


def an_important(cpu: str = "2", priority: int = 10, **more: Any) -> Pod:
    return a_pod("important", cpu=cpu, priority=priority, **more)


def plan_of(decision: Decision) -> Plan:
    assert decision.plan is not None, decision
    return decision.plan


def victims(decision: Decision) -> list[str]:
    return [victim.name for victim in plan_of(decision).evict]


def candidate(decision: Decision, node: str) -> Candidate:
    return next(each for each in plan_of(decision).candidates if each.node == node)


def words(decision: Decision) -> str:
    """What preemption adds to the failure message."""
    return decision.message.partition("preemption: ")[2]
