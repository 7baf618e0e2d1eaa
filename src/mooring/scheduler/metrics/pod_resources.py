"""`/metrics/resources`: what every pod of the cluster requests and is limited to, as kube-scheduler exposes it.

Three to six series a pod, so they stand on a page of their own. Nothing is kept until the page is served; then each
pod costs a small record, and pods with the same containers share their requests. It is worked out when the page
is read first, on the thread that serves it, and written without a metrics library: a big cluster has a million lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from mooring.objects.core import Pod, Quantities, ResourceRequirements
from mooring.objects.object_store import Present
from mooring.objects.quantity import BadQuantity, exact
from mooring.objects.requests import is_pod_level

REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"
_HELP = {
    REQUEST: "What pods request, by pod and resource: what the scheduler and the kubelet expect them to use.",
    LIMIT: "What pods are limited to, by pod and resource.",
}
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}

Amounts = dict[str, Fraction]
Which = Callable[[ResourceRequirements], Quantities]


class _Line(NamedTuple):
    """What differs between the lines of a pod: two labels and the value, as they are written."""

    resource: str
    unit: str
    value: str


class _Resources(msgspec.Struct, array_like=True):
    """The parts of a pod that its requests and limits follow from."""

    containers: list[ResourceRequirements]
    init_containers: list[tuple[bool, ResourceRequirements]]
    """Whether it is a sidecar, and its resources."""
    overhead: Quantities
    whole_pod: ResourceRequirements | None


class _Shares:
    """The lines of pods with the same containers; worked out when they are first read."""

    __slots__ = ("__weakref__", "_by_metric", "_encoded")

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._by_metric: dict[str, list[_Line]] | None = None

    def by_metric(self) -> dict[str, list[_Line]]:
        """Per metric, its lines."""
        if self._by_metric is None:
            of_pod = msgspec.msgpack.decode(self._encoded, type=_Resources)
            self._by_metric = {
                REQUEST: list(_lines(_total(of_pod, lambda resources: resources.requests, is_overhead_for_all=True))),
                LIMIT: list(_lines(_total(of_pod, lambda resources: resources.limits, is_overhead_for_all=False))),
            }
        return self._by_metric


class _Record(NamedTuple):
    namespace: str
    name: str
    node: str
    scheduler: str
    priority: int | None
    shares: _Shares


class PodResources:
    """Observes the watch of pods, and records what the page shows once it is served."""

    def __init__(self) -> None:
        self._is_served = False
        self._records: dict[str, _Record] = {}
        self._shared: WeakValueDictionary[bytes, _Shares] = WeakValueDictionary()

    def served(self, is_leading: Callable[[], bool] = lambda: True) -> Callable[[], bytes]:
        """What makes the page. To be called before the first list. A standby replica serves an empty page."""
        self._is_served = True
        return lambda: self.text() if is_leading() else b""

    def found(self, pod: Pod) -> None:
        self.changed(pod)

    def listed(self, present: Present) -> None:
        if self._is_served:
            for uid in self._records.keys() - set(present.values()):
                del self._records[uid]

    def changed(self, pod: Pod) -> None:
        if self._is_served:
            self._records[pod.uid] = self._record(pod)

    def deleted(self, pod: Pod) -> None:
        self._records.pop(pod.uid, None)

    def _record(self, pod: Pod) -> _Record:
        spec = pod.spec
        inits = [(each.restart_policy == "Always", each.resources) for each in spec.init_containers]
        encoded = msgspec.msgpack.encode(
            _Resources([each.resources for each in spec.containers], inits, spec.overhead, spec.resources)
        )
        shares = self._shared.get(encoded)
        if shares is None:
            shares = self._shared[encoded] = _Shares(encoded)
        return _Record(pod.namespace, pod.name, spec.node_name, spec.scheduler_name, spec.priority, shares)

    def text(self) -> bytes:
        """The page. May be called on another thread: only copies are walked through."""
        records = list(self._records.values())
        return "".join(line for name in (REQUEST, LIMIT) for line in _family(name, records)).encode()


def _family(name: str, records: list[_Record]) -> Iterator[str]:
    has_begun = False
    for record in records:
        lines = record.shares.by_metric()[name]
        if not lines:
            continue
        if not has_begun:
            has_begun = True
            yield f"# HELP {name} [STABLE] {_HELP[name]}\n# TYPE {name} gauge\n"
        priority = "" if record.priority is None else record.priority
        labels = (
            f'{name}{{namespace="{record.namespace}",node="{record.node}",pod="{record.name}",priority="{priority}",'
        )
        scheduler = record.scheduler.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for resource, unit, value in lines:
            yield f'{labels}resource="{resource}",scheduler="{scheduler}",unit="{unit}"}} {value}\n'


def _lines(amounts: Amounts) -> Iterator[_Line]:
    for resource, amount in sorted(amounts.items()):
        if amount:
            yield _Line(resource, _unit(resource), repr(float(amount)))


def _unit(resource: str) -> str:
    if resource.startswith("hugepages-"):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")


def _total(of_pod: _Resources, which: Which, *, is_overhead_for_all: bool) -> Amounts:
    """By the rule of `objects.requests`, but exactly, and of every resource that is named."""
    running: Amounts = {}
    for resources in of_pod.containers:
        _add(running, _amounts(which(resources)))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for is_sidecar, resources in of_pod.init_containers:
        wanted = _amounts(which(resources))
        if is_sidecar:
            _add(sidecars, wanted)
            _add(running, wanted)
            wanted = dict(sidecars)
        else:
            _add(wanted, sidecars)
        peak = {name: max(peak.get(name, Fraction()), wanted.get(name, Fraction())) for name in peak | wanted}
    total = {name: max(running.get(name, Fraction()), peak.get(name, Fraction())) for name in running | peak}
    if of_pod.whole_pod is not None:
        named = _amounts(which(of_pod.whole_pod))
        total |= {name: amount for name, amount in named.items() if is_pod_level(name)}
    for name, amount in _amounts(of_pod.overhead).items():
        if is_overhead_for_all or total.get(name):
            total[name] = total.get(name, Fraction()) + amount
    return total


def _amounts(quantities: Quantities) -> Amounts:
    """What cannot be parsed counts as nothing here; the scheduler itself logs it."""
    amounts: Amounts = {}
    for name, text in quantities.items():
        try:
            amounts[name] = exact(text)
        except BadQuantity:
            continue
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction()) + amount
