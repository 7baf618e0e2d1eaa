"""NUMA nodes of a simulated node: what pods have there, and whether the topology manager admits another one. No I/O.

The annotation `mooring.dev/numa` of a node, which the field `numa` of the cluster file stands for, describes them:

    {"policy": "single-numa-node", "scope": "container", "zones": 2}

`zones` is a number, by which what the node can allocate is shared, or a list with the resources of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import msgspec

from mooring.base.nesting import decode
from mooring.objects.core import ResourceRequirements
from mooring.objects.pod_fingerprint import ANNOTATION, ATTRIBUTE, fingerprint
from mooring.objects.qos import Qos, qos_by
from mooring.objects.quantity import exact
from mooring.simulated.document_fields import DocumentFields, FieldPath, Mistake, check_resources, quoted
from mooring.simulated.records import ContainerRecord, Document, PodRecord

NUMA = "mooring.dev/numa"
POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
SCOPES = ("container", "pod")
MOST_ZONES = 8
"""As many as a kubelet's topology manager accepts."""
NEAR, FAR = 10, 20
REJECTED = "TopologyAffinityError"
REJECTION = "Resources cannot be allocated with Topology locality"
_NOT_IN_ZONES = ("pods", "ephemeral-storage", "storage")

Amounts = dict[str, Fraction]


@dataclass(frozen=True)
class NumaSpec:
    """How many NUMA nodes there are, what they have, and how pods are aligned with them."""

    policy: str
    scope: str
    zones: tuple[Mapping[str, Fraction], ...]


def check_numa(value: Mapping[str, Any], path: FieldPath) -> Iterator[Mistake]:
    """The field `numa` of a SimulatedNodes document."""
    if not isinstance(value["numa"], dict):
        yield path, f"must be policy, scope and zones, got {quoted(value['numa'])}"
        return
    mistakes: list[Mistake] = []
    spec = _spec(value["numa"], {}, mistakes, path)
    yield from mistakes
    if spec is not None and isinstance(value["numa"].get("zones"), list):
        allocatable = {name: str(amount) for name, amount in (value.get("allocatable") or {}).items()}
        for message in contradictions(spec, allocatable):
            yield (*path, "zones"), message


def numa_annotation(numa: Mapping[str, Any] | None) -> dict[str, str]:
    """The annotation that a field `numa` stands for."""
    return {NUMA: msgspec.json.encode(numa).decode()} if numa else {}


def read_numa(text: str, allocatable: Mapping[str, Any]) -> NumaSpec:
    """The annotation of a node. Raises ValueError, also where the zones contradict what the node can allocate."""
    try:
        value = decode(text.encode())
    except msgspec.DecodeError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"must be policy, scope and zones, got {quoted(value)}")
    mistakes: list[Mistake] = []
    spec = _spec(value, allocatable, mistakes, ())
    problems = [f"{'.'.join(map(str, path))} {message}" for path, message in mistakes]
    problems += contradictions(spec, allocatable) if spec is not None else []
    if problems or spec is None:
        raise ValueError("; ".join(problems))
    return spec


def contradictions(spec: NumaSpec, allocatable: Mapping[str, Any]) -> list[str]:
    """Resources of which the zones together have more than the node."""
    found = []
    for name in sorted({name for zone in spec.zones for name in zone}):
        together = sum((zone.get(name, Fraction(0)) for zone in spec.zones), Fraction(0))
        if name in allocatable and together > exact(allocatable[name]):
            found.append(f"have {written_amount(together)} of {name}, but the node can allocate {allocatable[name]}")
    return found


def _spec(
    value: Mapping[str, Any], allocatable: Mapping[str, Any], mistakes: list[Mistake], path: FieldPath
) -> NumaSpec | None:
    before = len(mistakes)
    fields = DocumentFields(value, mistakes, path)
    policy = fields.choice("policy", POLICIES, "single-numa-node")
    scope = fields.choice("scope", SCOPES, "container")
    zones = value.get("zones")
    if isinstance(zones, list):
        fields.get("zones")
        if not 1 <= len(zones) <= MOST_ZONES:
            fields.mistake("zones", f"must be 1 to {MOST_ZONES} NUMA nodes, got {len(zones)}")
        for index, zone in enumerate(zones):
            found = list(check_resources({"zone": zone}, ("zone",)))
            mistakes += [((*path, "zones", index, *where[1:]), message) for where, message in found]
        if len(mistakes) > before:
            return None
        given: tuple[Mapping[str, Fraction], ...] = tuple(
            {name: exact(str(amount)) for name, amount in (zone or {}).items()} for zone in zones
        )
    else:
        count = fields.whole("zones", 2, least=1, most=MOST_ZONES) or 1
        given = _shared(allocatable, count)
    fields.finish("numa")
    return NumaSpec(policy, scope, given) if len(mistakes) == before else None


def _shared(allocatable: Mapping[str, Any], zones: int) -> tuple[Mapping[str, Fraction], ...]:
    """What the node can allocate, in whole units; what cannot be shared evenly goes to the first."""
    shared: tuple[Amounts, ...] = tuple({} for _ in range(zones))
    for name, text in allocatable.items():
        if name not in _NOT_IN_ZONES:
            each, left = divmod(int(exact(text)), zones)
            for index, zone in enumerate(shared):
                zone[name] = Fraction(each + (index < left))
    return shared


@dataclass
class NumaNodeState:
    """The NUMA nodes of one node, and what each pod has there."""

    spec: NumaSpec
    taken: dict[str, list[tuple[int, str, Fraction]]] = field(default_factory=dict)
    """By the pod's uid: NUMA node, resource, amount."""

    def available(self) -> list[Amounts]:
        left = [dict(zone) for zone in self.spec.zones]
        for parts in self.taken.values():
            for zone, name, amount in parts:
                left[zone][name] -= amount
        return left

    def admit(self, pod: PodRecord, *, is_running: bool = False) -> bool:
        """Give the pod its resources; False: the topology manager rejects it. A running pod is never rejected."""
        if pod.uid in self.taken:
            return True
        left, parts = self.available(), []
        for requests in self._requests(pod):
            chosen = self._zones_for(requests, left, is_running=is_running)
            if chosen is None:
                return False
            for name, wanted in requests.items():
                for zone in chosen:
                    amount = min(wanted, left[zone].get(name, Fraction(0)))
                    if amount > 0:
                        left[zone][name] -= amount
                        wanted -= amount
                        parts.append((zone, name, amount))
        self.taken[pod.uid] = parts
        return True

    def release(self, pod: PodRecord) -> bool:
        """Whether the pod had anything, or was counted."""
        return self.taken.pop(pod.uid, None) is not None

    def _requests(self, pod: PodRecord) -> list[Amounts]:
        """What is aligned, one by one: each container, or the pod as a whole."""
        containers = [*(each for each in pod.spec.init_containers if each.is_sidecar), *pod.spec.containers]
        is_guaranteed = _is_guaranteed([*pod.spec.init_containers, *pod.spec.containers])
        aligned = [self._aligned(container, is_guaranteed=is_guaranteed) for container in containers]
        if self.spec.scope == "container":
            return [requests for requests in aligned if requests]
        whole: Amounts = {}
        for requests in aligned:
            for name, amount in requests.items():
                whole[name] = whole.get(name, Fraction(0)) + amount
        return [whole] if whole else []

    def _aligned(self, container: ContainerRecord, *, is_guaranteed: bool) -> Amounts:
        """Devices of NUMA nodes; for Guaranteed pods also memory, and whole CPUs."""
        found: Amounts = {}
        for name, text in (container.resources.get("requests") or {}).items():
            amount = exact(text)
            is_shared = name in ("cpu", "memory") or name.startswith("hugepages-")
            is_exclusive = is_guaranteed and (name != "cpu" or amount.denominator == 1) if is_shared else True
            if amount > 0 and is_exclusive and any(name in zone for zone in self.spec.zones):
                found[name] = amount
        return found

    def _zones_for(self, requests: Amounts, left: list[Amounts], *, is_running: bool) -> tuple[int, ...] | None:
        """The fewest NUMA nodes, of the lowest ids, that have all this. None: the policy rejects the pod."""
        every = range(len(left))
        if self.spec.policy == "single-numa-node":
            sizes: Iterable[int] = (1,)
        elif self.spec.policy == "restricted":
            zones = [dict(zone) for zone in self.spec.zones]
            sizes = [next((size for size in _sizes(left) if _fitting(requests, zones, every, size)), len(left))]
        else:
            sizes = _sizes(left)
        for size in sizes:
            if (found := _fitting(requests, left, every, size)) is not None:
                return found
        is_rejected = self.spec.policy in ("single-numa-node", "restricted") and not is_running
        return None if is_rejected else tuple(every)


def _sizes(zones: list[Amounts]) -> range:
    return range(1, len(zones) + 1)


def _fitting(requests: Amounts, zones: list[Amounts], every: range, size: int) -> tuple[int, ...] | None:
    for chosen in combinations(every, size):
        if all(
            sum(zones[zone].get(name, Fraction(0)) for zone in chosen) >= amount for name, amount in requests.items()
        ):
            return chosen
    return None


def _is_guaranteed(containers: Iterable[ContainerRecord]) -> bool:
    resources = [
        ResourceRequirements(
            requests=container.resources.get("requests") or {}, limits=container.resources.get("limits") or {}
        )
        for container in containers
    ]
    return qos_by(None, resources) is Qos.GUARANTEED


def topology_document(name: str, uid: str, state: NumaNodeState, pods: Iterable[PodRecord]) -> Document:
    """The NodeResourceTopology that an agent on the node would write."""
    mark = fingerprint((pod.namespace, pod.name) for pod in pods)
    spec, left = state.spec, state.available()
    attributes = {
        "topologyManagerPolicy": spec.policy,
        "topologyManagerScope": spec.scope,
        ATTRIBUTE: mark,
    }
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, "annotations": {ANNOTATION: mark}, "ownerReferences": [owner]},
        "attributes": [{"name": key, "value": value} for key, value in attributes.items()],
        "zones": [
            {
                "name": f"node-{index}",
                "type": "Node",
                "costs": [
                    {"name": f"node-{other}", "value": NEAR if other == index else FAR}
                    for other in range(len(spec.zones))
                ],
                "resources": [
                    {
                        "name": resource,
                        "capacity": written_amount(amount),
                        "allocatable": written_amount(amount),
                        "available": written_amount(max(left[index][resource], Fraction(0))),
                    }
                    for resource, amount in sorted(zone.items())
                ],
            }
            for index, zone in enumerate(spec.zones)
        ],
    }


def written_amount(amount: Fraction) -> str:
    """As a quantity."""
    for suffix, size in (("Gi", 2**30), ("Mi", 2**20)):
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount) if amount.denominator == 1 else f"{-(-amount * 1000 // 1)}m"
