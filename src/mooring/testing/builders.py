"""Builders of pods and node objects: keywords for what a case is about, sensible values for the rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mooring.base.clock import timestamp
from mooring.objects import Node, ObjectMeta, OwnerReference, Pod
from mooring.objects.core import (
    DEFAULT_SCHEDULER,
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    NodeAffinity,
    NodeCondition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    NodeSpec,
    NodeStatus,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.objects.pod_groups import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    TopologyConstraint,
)
from mooring.objects.quantity import QuantityText
from mooring.objects.selectors import LabelSelector

_numbers = itertools.count(1)


def a_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    cpu: QuantityText | None = None,
    memory: QuantityText | None = None,
    requests: Mapping[str, QuantityText] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    node: str = "",
    nominated: str = "",
    priority: int | None = None,
    tolerations: Sequence[Toleration] = (),
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    spread: Sequence[TopologySpreadConstraint] = (),
    scheduler: str = DEFAULT_SCHEDULER,
    gates: Sequence[str] = (),
    ports: Sequence[int] = (),
    owner: str | None = None,
    created: float | None = None,
    volumes: Sequence[Mapping[str, Any]] = (),
    group: str | None = None,
) -> Pod:
    """A pod with one container. Each has a uid of its own; `requests` adds to (or replaces) `cpu` and `memory`."""
    requested: dict[str, QuantityText] = {}
    if cpu is not None:
        requested["cpu"] = cpu
    if memory is not None:
        requested["memory"] = memory
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid if uid is not None else f"uid-{next(_numbers)}",
            resource_version="1",
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            owner_references=tuple([] if owner is None else [OwnerReference(uid=owner, controller=True)]),
            creation_timestamp=None if created is None else timestamp(created),
        ),
        spec=PodSpec(
            containers=(
                Container(
                    name="main",
                    image="registry.example/app:1",
                    resources=ResourceRequirements(requests=requested | dict(requests or {})),
                    ports=tuple(ContainerPort(container_port=port, host_port=port) for port in ports),
                ),
            ),
            node_name=node,
            scheduler_name=scheduler,
            node_selector=dict(node_selector or {}),
            affinity=affinity,
            tolerations=tuple(tolerations),
            topology_spread_constraints=tuple(spread),
            priority=priority,
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            _volumes=tuple({"name": f"volume-{at}"} | dict(volume) for at, volume in enumerate(volumes)),
            scheduling_group=None if group is None else PodSchedulingGroup(pod_group_name=group),
        ),
        status=PodStatus(phase="Running" if node else "Pending", nominated_node_name=nominated),
    )


def a_pod_group(
    name: str = "group",
    *,
    min_count: int | None = None,
    namespace: str = "default",
    uid: str | None = None,
    topology_key: str | None = None,
    priority: int | None = None,
    disruption_mode: str | None = None,
) -> PodGroup:
    """A gang of at least `min_count` pods, or, without, a group with policy basic."""
    policy = (
        PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
        if min_count is None
        else PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=min_count))
    )
    topology = None if topology_key is None else [TopologyConstraint(key=topology_key)]
    return PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid if uid is not None else f"uid-{next(_numbers)}",
            resource_version="1",
            generation=1,
        ),
        spec=PodGroupSpec(
            scheduling_policy=policy,
            scheduling_constraints=None
            if topology is None
            else PodGroupSchedulingConstraints(topology=tuple(topology)),
            priority=priority,
            disruption_mode=disruption_mode,
        ),
    )


def a_node_object(
    name: str = "node",
    *,
    cpu: QuantityText = "4",
    memory: QuantityText = "16Gi",
    pods: int = 110,
    resources: Mapping[str, QuantityText] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
) -> Node:
    """A node as the API shows it: what hints get. `resources` adds extended ones; `images` name → bytes."""
    offered: dict[str, QuantityText] = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"node-{name}",
            resource_version="1",
            labels={"kubernetes.io/hostname": name, **(labels or {})},
            annotations=dict(annotations or {}),
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints)),
        status=NodeStatus(
            capacity=offered,
            allocatable=offered,
            conditions=(NodeCondition(type="Ready", status="True"),),
            images=tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items()),
        ),
    )


def a_taint(text: str) -> Taint:
    """A taint as kubectl writes it: `dedicated=gpu:NoSchedule`, `spot:PreferNoSchedule`."""
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    return Taint(key=key, value=value, effect=effect)


def a_toleration(text: str) -> Toleration:
    """What tolerates the taint of that text; without a value any value, without an effect any effect, `*` any taint."""
    if text == "*":
        return Toleration(operator="Exists")
    head, _, effect = text.partition(":")
    key, equal, value = head.partition("=")
    return Toleration(key=key, operator="Equal" if equal else "Exists", value=value, effect=effect)


def requires(*terms: Iterable[tuple[str, str, Sequence[str]]]) -> Affinity:
    """Required node affinity: any of the terms, each a list of (key, operator, values)."""
    return Affinity(
        node_affinity=NodeAffinity(
            required=NodeSelector(
                node_selector_terms=tuple(
                    NodeSelectorTerm(
                        match_expressions=tuple(
                            NodeSelectorRequirement(key=key, operator=operator, values=tuple(values))
                            for key, operator, values in term
                        )
                    )
                    for term in terms
                )
            )
        )
    )


def a_term(
    labels: Mapping[str, str] | LabelSelector | None = None,
    key: str = "zone",
    *,
    namespaces: Sequence[str] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term of pod (anti-)affinity: pods with these labels, in the domain of this key. Without labels: no pods."""
    selector = labels if labels is None or isinstance(labels, LabelSelector) else LabelSelector(match_labels={**labels})
    return PodAffinityTerm(
        label_selector=selector,
        topology_key=key,
        namespaces=tuple(namespaces),
        namespace_selector=namespace_selector,
    )


def pod_rules(
    *,
    near: Sequence[PodAffinityTerm] = (),
    away: Sequence[PodAffinityTerm] = (),
    rather_near: Sequence[tuple[int, PodAffinityTerm]] = (),
    rather_away: Sequence[tuple[int, PodAffinityTerm]] = (),
) -> Affinity:
    """Required and preferred pod affinity (`near`) and anti-affinity (`away`) by terms (`a_term`)."""

    def preferred(terms: Sequence[tuple[int, PodAffinityTerm]]) -> list[WeightedPodAffinityTerm]:
        return [WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term) for weight, term in terms]

    return Affinity(
        pod_affinity=PodAffinity(required=tuple(near), preferred=tuple(preferred(rather_near))),
        pod_anti_affinity=PodAffinity(required=tuple(away), preferred=tuple(preferred(rather_away))),
    )


def a_constraint(
    key: str = "zone",
    *,
    skew: int = 1,
    soft: bool = False,
    labels: Mapping[str, str] | LabelSelector | None = None,
    min_domains: int | None = None,
    match_label_keys: Sequence[str] = (),
    node_affinity: str = "Honor",
    node_taints: str = "Ignore",
) -> TopologySpreadConstraint:
    """A topology spread constraint over the domains of this key. Without labels: it counts no pods."""
    selector = labels if labels is None or isinstance(labels, LabelSelector) else LabelSelector(match_labels={**labels})
    return TopologySpreadConstraint(
        max_skew=skew,
        topology_key=key,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=selector,
        min_domains=min_domains,
        match_label_keys=tuple(match_label_keys),
        node_affinity_policy=node_affinity,
        node_taints_policy=node_taints,
    )
