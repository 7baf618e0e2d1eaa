"""The services that a plugin's constructor may take, in memory and controlled by the test.

    services = Services(objects={Quota: [quota]}, pods=[a_pod(), a_pod(node="node-1")])
    plugin = a_plugin(TeamQuota, services, label="team")

Time stands still until `services.clock.advance(…)`, background work runs at `await services.background.step()`,
and what the plugin did is there to be read: `services.queue.activated`, `services.log.lines`, …
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import msgspec

from mooring.base.clock import Clock, ManualClock
from mooring.base.errors import ApiError, Fault, OperatorMistake, Problem
from mooring.base.log import Log
from mooring.engine import PlacementRefused
from mooring.engine.reservation import LONGEST_WAIT_SECONDS, waited_too_long
from mooring.framework import (
    Args,
    Background,
    Binder,
    ClaimsInFlight,
    ClaimWriter,
    FeatureGates,
    Http,
    HttpResponse,
    Metrics,
    NodeUse,
    Objects,
    Plugin,
    Pod,
    PodEvents,
    PodGroups,
    Pods,
    PodWriter,
    Preemptions,
    ProblemReports,
    Published,
    Queue,
    Refusal,
    ResourceMetrics,
    VolumeWriter,
    WaitingPod,
    WaitingPods,
)
from mooring.framework.args import checked_mistakes
from mooring.framework.contract import check_contract
from mooring.framework.pod_metadata import check_metadata
from mooring.framework.registry import build
from mooring.framework.services import permit_plugin
from mooring.framework.standing_problems import StandingProblems
from mooring.objects.meta import KubeObject
from mooring.objects.object_store import IndexedStore
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.pod_groups import PodGroup
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.state import State, StatePodGroups, StatePods
from mooring.testing.claims import MemoryClaimWriter

P = TypeVar("P", bound=Plugin)
T = TypeVar("T")
K = TypeVar("K", bound=KubeObject)


class MemoryLog(Log):
    """A log that keeps its lines: `[(severity, message, values)]`, and only up to its verbosity."""

    __slots__ = ("_verbosity", "lines")

    def __init__(
        self,
        name: str = "test",
        verbosity: int = 10,
        *,
        level: int = 0,
        lines: list[tuple[str, str, dict[str, object]]] | None = None,
    ) -> None:
        super().__init__(name, level)
        self._verbosity = verbosity
        self.lines = [] if lines is None else lines

    def __bool__(self) -> bool:
        return self._level <= self._verbosity

    def v(self, level: int) -> Log:
        return MemoryLog(self.name, self._verbosity, level=level, lines=self.lines)

    @property
    def messages(self) -> list[str]:
        return [message for _, message, _ in self.lines]

    def _write(self, severity: str, message: str, values: dict[str, object]) -> None:
        self.lines.append((severity, message, values))


class MemoryObjects(IndexedStore[Any]):
    """All objects of one kind, as the test put them there."""

    def __init__(self, items: Iterable[KubeObject] = ()) -> None:
        super().__init__()
        self.synced = True
        for item in items:
            self.put(item)

    def remove(self, item: KubeObject) -> None:
        if self.discard(item.key) is None:
            raise KeyError(item.key)


@dataclass
class _Waiting:
    """A pod that waits on permit."""

    pod: Pod
    node: str
    waits: dict[str, float]
    """Plugin → until when, by the clock of the test."""
    seconds: dict[str, float]
    ended: Ended | None


Ended = Callable[[PlacementRefused | None], None]
"""Called with the plugin that rejected the pod and its reason, or None: all have allowed it."""


class MemoryWaitingPods:
    """The pods that wait on permit, and what became of them. `a_cluster` lets in those that its plugins make wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self.allowed: list[str] = []
        """Names of the pods that all their plugins have allowed."""
        self.rejected: list[tuple[str, str]] = []
        """Names and reasons."""

    def put(
        self, pod: Pod, node: str, plugin: str, seconds: float = LONGEST_WAIT_SECONDS, ended: Ended | None = None
    ) -> None:
        """This pod waits until this plugin allows it, at most so long."""
        waiting = self._waiting.setdefault(pod.uid, _Waiting(pod, node, {}, {}, ended))
        waiting.waits[plugin], waiting.seconds[plugin] = self._clock.monotonic() + seconds, seconds

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter([WaitingPod(each.pod, each.node, frozenset(each.waits)) for each in self._waiting.values()])

    def allow(self, uid: str, plugin: Plugin | str) -> bool:
        waiting = self._waiting.get(uid)
        if waiting is None:
            return False
        waiting.waits.pop(permit_plugin(plugin, waiting.pod, waiting.seconds), None)
        if not waiting.waits:
            del self._waiting[uid]
            self.allowed.append(waiting.pod.name)
            if waiting.ended is not None:
                waiting.ended(None)
        return True

    def reject(self, uid: str, plugin: Plugin | str, reason: str) -> bool:
        waiting = self._waiting.pop(uid, None)
        if waiting is None:
            return False
        self.rejected.append((waiting.pod.name, reason))
        if waiting.ended is not None:
            name = plugin if isinstance(plugin, str) else plugin.name
            waiting.ended(PlacementRefused(name, Refusal(reason)))
        return True

    def expire(self) -> None:
        """Reject the pods whose time is up: after `services.clock.advance(…)`."""
        for uid, waiting in list(self._waiting.items()):
            plugin = min(waiting.waits, key=lambda name: (waiting.waits[name], name))
            if waiting.waits[plugin] <= self._clock.monotonic():
                self.reject(uid, plugin, waited_too_long(plugin, waiting.seconds[plugin]))


class MemoryQueue:
    """What plugins requested of the queue."""

    def __init__(self) -> None:
        self.activated: list[str] = []
        """Names of the pods to try now, in the order of the requests."""

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.name for pod in pods]


class MemoryPreemptions:
    """The pods for which others are being evicted, as set by the test."""

    def __init__(self) -> None:
        self.under_way: set[str] = set()
        """Uids."""
        self.victims: list[PlacedPod] = []
        """Those that are not terminating yet."""

    def is_under_way(self, uid: str) -> bool:
        return uid in self.under_way

    def being_evicted(self) -> Sequence[PlacedPod]:
        return self.victims


class MemoryHttp:
    """Responses from a table: url → JSON value, `HttpResponse`, or an exception to raise."""

    def __init__(self, responses: Mapping[str, Any] | None = None) -> None:
        self.responses = dict(responses or {})
        """May change while the test runs."""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """The requests: url and parameters."""

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str | None = None,
    ) -> HttpResponse:
        self.requests.append((url, dict(params or {})))
        response = self.responses.get(url, Fault(f"{url} does not respond"))
        if isinstance(response, BaseException):
            raise response
        if not isinstance(response, HttpResponse):
            return HttpResponse(200, msgspec.json.encode(response), url)
        return response if response.url else replace(response, url=url)


class StepBackground:
    """Background work that runs when the test calls `step`. What fails, fails the test."""

    def __init__(self) -> None:
        self._once: list[Callable[[], Awaitable[None]]] = []
        self._repeated: list[tuple[float, Callable[[], Awaitable[None]]]] = []

    @property
    def periods(self) -> list[float]:
        """How often each repeated work wants to run, in seconds."""
        return [seconds for seconds, _ in self._repeated]

    def every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        self._repeated.append((seconds, work))

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        self._once.append(work)

    async def step(self) -> None:
        """Run what runs once, and a round of everything else."""
        once, self._once = self._once, []
        for work in [*once, *(work for _, work in self._repeated)]:
            await work()


Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class MemoryMetrics:
    """What plugins counted: `value("name", label="…")`. Refuses what the scheduler's metrics refuse."""

    def __init__(self) -> None:
        self._values: Values = {}
        self._made: dict[str, tuple[type, tuple[str, ...]]] = {}

    def value(self, name: str, /, **labels: str) -> float:
        """A counter's sum, a gauge's last value, or how often a histogram observed; 0 before the first."""
        return self._values.get((name, tuple(sorted(labels.items()))), 0.0)

    def counter(self, name: str, description: str, *labels: str) -> MemoryCounter:
        return self._metric(MemoryCounter, name, labels)

    def gauge(self, name: str, description: str, *labels: str) -> MemoryGauge:
        return self._metric(MemoryGauge, name, labels)

    def histogram(self, name: str, description: str, *labels: str, buckets: tuple[float, ...] = ()) -> MemoryHistogram:
        return self._metric(MemoryHistogram, name, labels)

    def _metric(self, kind: type[M], name: str, labels: tuple[str, ...]) -> M:
        if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name):
            raise Fault(f'"{name}" is not the name of a metric: letters, digits and _ only, not a digit first')
        if self._made.setdefault(name, (kind, labels)) != (kind, labels):
            raise Fault(f'metric "{name}" is there already, as another type or with other labels')
        return kind(self._values, name, labels)


class MemoryMetric:
    """One of them; wrong labels fail the test as they would fail Prometheus' client."""

    def __init__(self, values: Values, name: str, labels: tuple[str, ...]) -> None:
        self._values, self._name, self._labels = values, name, labels

    def _key(self, labels: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
        if set(labels) != set(self._labels):
            raise ValueError(f"metric {self._name} has the labels {self._labels}, not {tuple(labels)}")
        return self._name, tuple(sorted(labels.items()))

    def _add(self, amount: float, labels: Mapping[str, str]) -> None:
        key = self._key(labels)
        self._values[key] = self._values.get(key, 0.0) + amount


class MemoryCounter(MemoryMetric):
    def inc(self, amount: float = 1.0, /, **labels: str) -> None:
        if amount < 0:
            raise ValueError("Counters can only be incremented by non-negative amounts.")
        self._add(amount, labels)


class MemoryGauge(MemoryMetric):
    def set(self, value: float, /, **labels: str) -> None:
        self._values[self._key(labels)] = value


class MemoryHistogram(MemoryMetric):
    def observe(self, value: float, /, **labels: str) -> None:
        self._add(1.0, labels)


M = TypeVar("M", bound=MemoryMetric)


class MemoryBinder:
    """Bindings that were requested."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []
        """Pod (namespace/name) and node."""
        self.annotations: dict[str, dict[str, str]] = {}
        """By pod: those that the bind plugin gave. What others add by `cycle.add_to_binding` is in their cycle."""
        self.labels: dict[str, dict[str, str]] = {}
        """Likewise."""
        self.failure: Exception | None = None
        """What `bind` raises instead."""

    async def bind(
        self,
        pod: Pod,
        node: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        check_metadata(annotations or {}, labels or {})
        if self.failure is not None:
            raise self.failure
        self.bound.append((pod.key, node))
        self.annotations[pod.key] = dict(annotations or {})
        self.labels[pod.key] = dict(labels or {})


class MemoryPodWriter:
    """Pods as they are after what plugins wrote to them."""

    def __init__(self) -> None:
        self.written: dict[str, Pod] = {}
        """By namespace/name."""
        self.failure: Exception | None = None

    async def patch(
        self,
        pod: Pod,
        *,
        annotations: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str | None] | None = None,
    ) -> Pod:
        check_metadata(annotations or {}, labels or {})
        if self.failure is not None:
            raise self.failure
        known = self.written.get(pod.key, pod)
        metadata = msgspec.structs.replace(
            known.metadata,
            annotations=_patched(known.annotations, annotations or {}),
            labels=_patched(known.labels, labels or {}),
        )
        self.written[pod.key] = msgspec.structs.replace(known, metadata=metadata)
        return self.written[pod.key]


def _patched(known: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**known, **changes}.items() if value is not None}


class SharedPublished(Published[T]):
    """The test's side of all `Published[T]` of one type."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._plugins: list[_OfPlugin[T]] = []
        self._by_test: list[T] = []

    def publish(self, value: T, *, about: str = "") -> None:
        super().publish(value, about=about)
        self._by_test.append(value)
        for each in self._plugins:
            each.receive(value)

    def note(self, value: T, about: str) -> None:
        """One of the plugins has published this."""
        super().publish(value, about=about)

    def for_plugin(self) -> Published[T]:
        """For one plugin more. It has what the test has published so far."""
        published = _OfPlugin(self._clock, self)
        for value in self._by_test:
            published.receive(value)
        self._plugins.append(published)
        return published


class _OfPlugin(Published[T]):
    def __init__(self, clock: Clock, shared: SharedPublished[T]) -> None:
        super().__init__(clock)
        self._shared = shared

    def publish(self, value: T, *, about: str = "") -> None:
        super().publish(value, about=about)
        self._shared.note(value, about)

    def receive(self, value: T) -> None:
        super().publish(value)


class MemoryVolumeWriter:
    """Writes straight into the objects that plugins read, unless the test holds the watch events back."""

    def __init__(self, objects: Callable[[type[KubeObject]], MemoryObjects]) -> None:
        self._objects = objects
        self._version = 1_000_000
        self.written: list[tuple[str, str]] = []
        """Volume and claim, or claim and node."""
        self.failures: dict[str, Exception] = {}
        """What is raised instead of writing the object of this key."""
        self.is_shown = True
        """Whether `Objects` show what is written, as the watch would, or not yet."""

    async def write_claim_ref(self, volume: PersistentVolume) -> PersistentVolume:
        ref = volume.spec.claim_ref
        return self._write(volume, f"{ref.namespace}/{ref.name}" if ref is not None else "")

    async def write_selected_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return self._write(claim, claim.selected_node or "")

    def _write(self, item: K, what: str) -> K:
        if (failure := self.failures.get(item.key)) is not None:
            raise failure
        kept = self._objects(type(item))
        there = kept.get(item.name, item.namespace or None)
        if there is None or there.metadata.resource_version != item.metadata.resource_version:
            raise ApiError(409, "Conflict", f'Operation cannot be fulfilled on {item.KIND.plural} "{item.name}"')
        self.written.append((item.key, what))
        self._version += 1
        metadata = msgspec.structs.replace(item.metadata, resource_version=str(self._version))
        written = msgspec.structs.replace(item, metadata=metadata)
        if self.is_shown:
            kept.put(written)
        return written


class MemoryEvents:
    """The events that plugins recorded."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, str]] = []
        """Pod (namespace/name), reason and note."""

    def record(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        self.recorded.append((pod.key, reason, note))


class MemoryProblemReports:
    """The events about outside data that plugins caused, as the leader would write them."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, str, str]] = []
        """Node (empty: the scheduler), type, reason and note."""

    def for_plugin(self) -> StandingProblems:
        def write(node: str, is_warning: bool, reason: str, note: str) -> bool:
            self.recorded.append((node, "Warning" if is_warning else "Normal", reason, note))
            return True

        return StandingProblems(write)


class MemoryResourceMetrics:
    """What nodes use, as set by the test."""

    def __init__(self) -> None:
        self.used: list[NodeUse] = []
        self.failure: Exception | None = None
        """What `nodes` raises instead."""

    async def nodes(self, *, timeout_seconds: float = 10.0) -> list[NodeUse]:
        if self.failure is not None:
            raise self.failure
        return self.used


class Services:
    """Everything a constructor may take."""

    def __init__(
        self,
        *,
        objects: Mapping[type[KubeObject], Iterable[KubeObject]] | None = None,
        published: Mapping[Any, Any] | None = None,
        http: Mapping[str, Any] | None = None,
        pods: Iterable[Pod] = (),
        gates: Mapping[str, bool] | None = None,
        verbosity: int = 10,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.log = MemoryLog(verbosity=verbosity)
        self.gates = FeatureGates(gates)
        self.http = MemoryHttp(http)
        self.background = StepBackground()
        self.state = State()
        """What `Pods` reads; a cluster made with these services is this state."""
        for pod in pods:
            if pod.spec.node_name:
                self.state.set_pod(placed(pod))
            else:
                self.state.set_pending(pod)
        self.pods = StatePods(self.state)
        self.waiting_pods = MemoryWaitingPods(self.clock)
        self.queue = MemoryQueue()
        self.binder = MemoryBinder()
        self.pod_writer = MemoryPodWriter()
        self.volume_writer = MemoryVolumeWriter(self.objects)
        self.metrics = MemoryMetrics()
        self.preemptions = MemoryPreemptions()
        self.claim_writer = MemoryClaimWriter(self.objects)
        self.claims_in_flight = ClaimsInFlight()
        self.events = MemoryEvents()
        self.problems = MemoryProblemReports()
        self.resource_metrics = MemoryResourceMetrics()
        self._objects = {kind: MemoryObjects(items) for kind, items in (objects or {}).items()}
        self._published: dict[Any, SharedPublished[Any]] = {}
        for kind, value in (published or {}).items():
            self.published(kind).publish(value)

    def objects(self, kind: type[KubeObject]) -> MemoryObjects:
        """The objects of a kind: what a plugin gets that takes `Objects[kind]`."""
        return self._objects.setdefault(kind, MemoryObjects())

    def published(self, kind: type[T]) -> SharedPublished[T]:
        """The outside data of a type: what the test publishes here, every plugin that takes `Published[kind]` has.

        Each of these plugins has data of its own, as in the scheduler: what one publishes, the others do not see. The
        latest of all of them is here.
        """
        return self._published.setdefault(kind, SharedPublished(self.clock))

    def provide(self, wanted: Any) -> Any:
        """What a parameter of this type gets. LookupError: there is no such service."""
        if typing.get_origin(wanted) is Objects:
            return self.objects(typing.get_args(wanted)[0])
        if typing.get_origin(wanted) is Published:
            return self.published(typing.get_args(wanted)[0]).for_plugin()
        return {
            Clock: self.clock,
            Log: self.log,
            FeatureGates: self.gates,
            Http: self.http,
            Background: self.background,
            Pods: self.pods,
            WaitingPods: self.waiting_pods,
            Queue: self.queue,
            Binder: self.binder,
            VolumeWriter: self.volume_writer,
            Metrics: self.metrics,
            Preemptions: self.preemptions,
            ClaimWriter: self.claim_writer,
            ClaimsInFlight: self.claims_in_flight,
            PodEvents: self.events,
            ProblemReports: self.problems.for_plugin(),
            PodGroups: StatePodGroups(self.state, self.objects(PodGroup)),
            PodWriter: self.pod_writer,
            ResourceMetrics: self.resource_metrics,
        }[wanted]


def a_plugin(cls: type[P], services: Services | None = None, /, **arguments: Any) -> P:
    """An instance of the plugin, checked against the contract, with these arguments (snake_case) and services.

    Arguments take the way they take from a configuration file: wrong ones raise `OperatorMistake`.
    """
    given = services or Services()
    check_contract(cls, f"class {cls.__qualname__}")

    def provide(wanted: Any) -> Any:
        if inspect.isclass(wanted) and issubclass(wanted, Args):
            return _checked(wanted, arguments)
        return given.provide(wanted)

    return cast(P, build(cls, provide))


def _checked(kind: type[Args], arguments: Mapping[str, Any]) -> Args:
    on_the_wire = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    document = {on_the_wire.get(name, name): msgspec.to_builtins(value) for name, value in arguments.items()}
    try:
        args = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise OperatorMistake(f"{kind.__name__}: {error}") from error
    if problems := [Problem(path, message) for path, message in checked_mistakes(args)]:
        raise OperatorMistake(f"{kind.__name__} has {len(problems)} problem(s).", problems)
    return args
