"""The rows of a trace, and the pods that they describe.

| column | meaning |
| --- | --- |
| `arrival` | when the pod is created: seconds from the beginning, or a timestamp; required |
| `duration` | how long it runs once it is bound, in seconds; empty: for ever |
| `name`, `namespace` | default: `pod-1` and so on in `default` |
| `priority` | a whole number |
| `labels` | `key=value` pairs, separated by `;` |
| `owner` | pods of the same owner have the same controller, as those of a Deployment |
| `scheduler` | the `schedulerName` |
| `node_selector` | labels that its node must have: `key=value` pairs separated by `;`, values that will do by `|` |
| `cpu`, `memory`, `nvidia.com/gpu`, … | what its container requests, as Kubernetes quantities |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from mooring.base.clock import timestamp
from mooring.objects.core import (
    DEFAULT_SCHEDULER,
    Affinity,
    Container,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from mooring.objects.meta import ObjectMeta, OwnerReference
from mooring.simulator.scenario import Arrival
from mooring.simulator.virtual_time import START

ARRIVAL = "arrival"
COLUMNS = (ARRIVAL, "duration", "name", "namespace", "priority", "labels", "owner", "scheduler", "node_selector")
"""All but the resources, in the order in which they are written."""
DEFAULT_NAMESPACE = "default"

Alternatives = Mapping[str, tuple[str, ...]]
"""Labels of nodes, each with the values that will do."""


class TraceRow(msgspec.Struct, frozen=True, gc=False):
    """A pod of a trace."""

    arrival: float
    """In seconds from the beginning."""
    duration: float | None = None
    """How long it runs once it is bound; None: for ever."""
    name: str = ""
    """Empty: `pod-N` by its number."""
    namespace: str = DEFAULT_NAMESPACE
    priority: int | None = None
    labels: Mapping[str, str] = {}
    owner: str = ""
    scheduler: str = ""
    node_selector: Alternatives = {}
    requests: Mapping[str, str] = {}
    """Quantities by resource."""


def arrivals_of(rows: Iterable[TraceRow]) -> list[Arrival]:
    """The pods of the rows, in their order."""
    pods = TracePods()
    return [Arrival(row.arrival, pods.pod(row, number), row.duration) for number, row in enumerate(rows, start=1)]


class TracePods:
    """Makes pods of rows. What is equal in two pods is one object: so a million pods take little memory."""

    def __init__(self) -> None:
        self._specs: dict[tuple[Any, ...], PodSpec] = {}
        self._owners: dict[tuple[str, str], tuple[OwnerReference, ...]] = {}
        self._labels: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._annotations: dict[str, str] = {}
        self._status = PodStatus()

    def pod(self, row: TraceRow, number: int) -> Pod:
        """The pod of the row with this number, from 1."""
        name = row.name or f"pod-{number}"
        metadata = ObjectMeta(
            name=name,
            namespace=row.namespace,
            uid=f"{row.namespace}/{name}",
            resource_version="1",
            generation=1,
            labels=self._labels_of(row),
            annotations=self._annotations,
            owner_references=tuple(self._owners_of(row)),
            creation_timestamp=timestamp(START + row.arrival),
        )
        return Pod(metadata=metadata, spec=self._spec_of(row), status=self._status)

    def _spec_of(self, row: TraceRow) -> PodSpec:
        key = (*row.requests.items(), row.priority, row.scheduler, *row.node_selector.items())
        if (spec := self._specs.get(key)) is None:
            spec = self._specs[key] = _spec(row)
        return spec

    def _labels_of(self, row: TraceRow) -> dict[str, str]:
        key = tuple(row.labels.items())
        if (labels := self._labels.get(key)) is None:
            labels = self._labels[key] = dict(key)
        return labels

    def _owners_of(self, row: TraceRow) -> tuple[OwnerReference, ...]:
        key = (row.namespace, row.owner)
        if (owners := self._owners.get(key)) is None:
            uid = f"{row.namespace}/{row.owner}"
            owners = self._owners[key] = (OwnerReference(uid=uid, controller=True),) if row.owner else ()
        return owners


def _spec(row: TraceRow) -> PodSpec:
    container = Container(name="main", resources=ResourceRequirements(requests=dict(row.requests)))
    several = tuple(
        NodeSelectorRequirement(key=key, operator="In", values=tuple(values))
        for key, values in row.node_selector.items()
        if len(values) > 1
    )
    terms = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=several),))
    return PodSpec(
        containers=(container,),
        priority=row.priority,
        scheduler_name=row.scheduler or DEFAULT_SCHEDULER,
        node_selector={key: values[0] for key, values in row.node_selector.items() if len(values) == 1},
        affinity=Affinity(node_affinity=NodeAffinity(required=terms)) if several else None,
    )
