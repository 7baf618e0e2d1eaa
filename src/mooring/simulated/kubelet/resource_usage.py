"""What simulated nodes and pods use, as metrics.k8s.io reports it: computed when a client reads it.

A pod uses what it requests. Annotations of a pod state something else, those of a node what it uses beside its pods:

    mooring.dev/cpu-use: 250m              # or 40%, of the request (of a node: of its capacity)
    mooring.dev/memory-use: 1Gi..2Gi       # or 20%..80%: changes every 15 seconds, between the two
    mooring.dev/use-seed: "7"              # another seed, other numbers between the two

Numbers between two follow from the seed, the object's name and the time alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import did_you_mean
from mooring.objects.quantity import BadQuantity, exact
from mooring.simulated.document_fields import FieldPath, Mistake, quoted
from mooring.simulated.records import ContainerRecord, Document, NodeRecord, PodRecord
from mooring.simulated.seeded_random import SeededRandom

CPU_USE, MEMORY_USE, USE_SEED = "mooring.dev/cpu-use", "mooring.dev/memory-use", "mooring.dev/use-seed"
WINDOW_SECONDS = 15
"""How long a number between two stays; metrics-server's window, too."""
API_VERSION = "metrics.k8s.io/v1beta1"
NANO, KIBI = 10**9, 1024
_ANNOTATIONS = {"cpu": CPU_USE, "memory": MEMORY_USE}
_FIELDS = {**_ANNOTATIONS, "seed": USE_SEED}
_FORM = 'must be a quantity such as "250m", a share such as "40%", or two of them as in "200m..800m"'


@dataclass(frozen=True)
class UsedAmount:
    """A quantity, or a share of what is requested (of a node: of its capacity)."""

    number: float
    is_share: bool = False

    def of(self, whole: float) -> float:
        return self.number * whole if self.is_share else self.number


@lru_cache(maxsize=4096)
def parse_use(text: str) -> tuple[UsedAmount, UsedAmount]:
    """The least and the most that is used. Raises ValueError."""
    least, separator, most = text.partition("..")
    first = _amount(least.strip())
    second = _amount(most.strip()) if separator else first
    if first.is_share == second.is_share and first.number > second.number:
        raise ValueError(f'"{least}" is more than "{most}"')
    return first, second


def _amount(text: str) -> UsedAmount:
    try:
        number = exact(text.removesuffix("%"))
    except BadQuantity:
        raise ValueError(f'{_FORM}, got "{text}"') from None
    if number < 0:
        raise ValueError(f'{_FORM}, got "{text}"')
    return UsedAmount(float(number) / 100, is_share=True) if text.endswith("%") else UsedAmount(float(number))


def wrong_annotations(annotations: Mapping[str, str]) -> list[str]:
    """What is wrong with annotations about use; the defaults count instead of those."""
    found = []
    for name in (CPU_USE, MEMORY_USE):
        if (text := annotations.get(name)) is not None:
            try:
                parse_use(text)
            except ValueError as error:
                found.append(f"annotation {name}: {error}")
    if (seed := annotations.get(USE_SEED)) is not None and _seed(annotations) is None:
        found.append(f'annotation {USE_SEED}: must be a whole number, got "{seed}"')
    return found


def check_use(value: Mapping[str, Any], path: FieldPath) -> Iterator[Mistake]:
    """The field `use` of a SimulatedNodes document: what its nodes use beside their pods."""
    uses = value["use"]
    if not isinstance(uses, dict):
        yield path, f"must be cpu, memory or seed and their values, got {quoted(uses)}"
        return
    for name, text in uses.items():
        if name not in _FIELDS:
            yield (*path, name), f"must be one of {', '.join(_FIELDS)}.{did_you_mean(str(name), _FIELDS)}"
        else:
            for wrong in wrong_annotations({_FIELDS[name]: str(text)}):
                yield (*path, name), wrong.partition(": ")[2]


def use_annotations(uses: Mapping[str, Any]) -> dict[str, str]:
    """The annotations that a field `use` stands for."""
    return {_FIELDS[name]: str(text) for name, text in uses.items()}


def _seed(annotations: Mapping[str, str]) -> int | None:
    try:
        return int(annotations.get(USE_SEED, "0")[:20])
    except ValueError:
        return None


class ResourceUsage:
    """NodeMetrics and PodMetrics of the simulated nodes and their pods."""

    def __init__(
        self,
        nodes: Callable[[], Iterable[NodeRecord]],
        pods_on: Callable[[str], Iterable[PodRecord]],
        *,
        clock: Clock,
    ) -> None:
        self._nodes, self._pods_on, self._clock = nodes, pods_on, clock

    def node_metrics(self, name: str = "") -> Iterator[Document]:
        """Of all simulated nodes, or of one."""
        now = self._clock.now()
        for node in self._nodes():
            if name in ("", node.name):
                used = {resource: self._node_use(node, resource, now) for resource in _ANNOTATIONS}
                yield self._document("NodeMetrics", node, now) | {"usage": _quantities(used)}

    def pod_metrics(self, namespace: str = "", name: str = "") -> Iterator[Document]:
        """Of the running pods on simulated nodes."""
        now = self._clock.now()
        for node in self._nodes():
            for pod in self._running_on(node):
                if namespace in ("", pod.namespace) and name in ("", pod.name):
                    yield self._document("PodMetrics", pod, now) | {"containers": self._containers(pod, now)}

    def _running_on(self, node: NodeRecord) -> Iterator[PodRecord]:
        return (pod for pod in self._pods_on(node.name) if pod.status.phase == "Running")

    def _node_use(self, node: NodeRecord, resource: str, now: float) -> float:
        """What the node itself and its pods use; not more than there is."""
        capacity = _quantity(node.status.capacity.get(resource, 0))
        used = _annotated(node.metadata.annotations, resource, capacity, f"node/{node.name}", now) or 0.0
        used += sum(_pod_use(pod, resource, now) for pod in self._running_on(node))
        return min(used, capacity) if capacity else used

    def _containers(self, pod: PodRecord, now: float) -> list[Document]:
        """The pod's use, shared among its containers as their requests are."""
        running = _running_containers(pod)
        used: list[dict[str, float]] = [{} for _ in running]
        for resource in _ANNOTATIONS:
            total = _pod_use(pod, resource, now)
            requests = [_request(container, resource) for container in running]
            of_all = sum(requests)
            for place, request in enumerate(requests):
                used[place][resource] = total * request / of_all if of_all else total / len(running)
        return [
            {"name": container.name, "usage": _quantities(one)} for container, one in zip(running, used, strict=True)
        ]

    def _document(self, kind: str, subject: NodeRecord | PodRecord, now: float) -> Document:
        stamp = timestamp(now)
        metadata: Document = {"name": subject.name, "creationTimestamp": stamp}
        if subject.namespace:
            metadata["namespace"] = subject.namespace
        if subject.metadata.labels:
            metadata["labels"] = dict(subject.metadata.labels)
        return {
            "kind": kind,
            "apiVersion": API_VERSION,
            "metadata": metadata,
            "timestamp": stamp,
            "window": f"{WINDOW_SECONDS}s",
        }


def _running_containers(pod: PodRecord) -> list[ContainerRecord]:
    return [*(each for each in pod.spec.init_containers if each.is_sidecar), *pod.spec.containers]


def _pod_use(pod: PodRecord, resource: str, now: float) -> float:
    requested = sum(_request(container, resource) for container in _running_containers(pod))
    used = _annotated(pod.metadata.annotations, resource, requested, f"{pod.namespace}/{pod.name}", now)
    return requested if used is None else used


def _annotated(annotations: Mapping[str, str], resource: str, whole: float, name: str, now: float) -> float | None:
    """What annotations state; None where they state nothing, or something that cannot be read."""
    text = annotations.get(_ANNOTATIONS[resource])
    if text is None:
        return None
    try:
        least, most = parse_use(text)
    except ValueError:
        return None
    if least == most:
        return least.of(whole)
    window = int(now // WINDOW_SECONDS)
    share = SeededRandom(_seed(annotations) or 0, f"use of {resource} by {name} in {window}").uniform()
    return least.of(whole) + share * (most.of(whole) - least.of(whole))


def _request(container: ContainerRecord, resource: str) -> float:
    return _quantity((container.resources.get("requests") or {}).get(resource, 0))


@lru_cache(maxsize=4096)
def _quantity(text: str | int | float) -> float:
    return float(exact(text))


def _quantities(used: Mapping[str, float]) -> dict[str, str]:
    """In metrics-server's units."""
    return {"cpu": f"{round(used['cpu'] * NANO)}n", "memory": f"{round(used['memory'] / KIBI)}Ki"}
