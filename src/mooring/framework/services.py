"""What a plugin's constructor may take, by the type of its parameters.

    def __init__(self, args: QuotaArgs, quotas: Objects[Quota], log: Log) -> None: ...

Each service is narrow, and there is none that reaches everything. Also available: the plugin's own `Args` class,
`Clock` and `Log` (from `mooring.base`) and `FeatureGates`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.base.nesting import decode
from mooring.framework.cycle import PodsWhere
from mooring.objects.core import ContainerExtendedResourceRequest, Pod
from mooring.objects.meta import KubeObject
from mooring.objects.placed import PlacedPod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource import ResourceClaim
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from mooring.framework.plugin import Plugin

K = TypeVar("K", bound=KubeObject, covariant=True)
T = TypeVar("T")


class Objects(Protocol[K]):
    """All objects of one kind, kept up to date by a watch. Taking it in a constructor makes the kind watched.

    Until the first list has come, pods of the profiles that use the plugin wait; its results are then complete.
    """

    def get(self, name: str, namespace: str | None = None) -> K | None: ...
    def all(self) -> Iterable[K]: ...
    def indexed(self, keys: Callable[[K], Iterable[Hashable]]) -> Index[K]:
        """A standing index of all objects by the keys of each. Call it once, in the constructor."""
        ...

    @property
    def version(self) -> int:
        """Another number after every change, so that what was computed from all objects can be kept until then."""
        ...

    @property
    def synced(self) -> bool: ...


class Index(Protocol[K]):
    """The objects that share a key."""

    def at(self, key: Hashable) -> Sequence[K]: ...


class Published(Generic[T]):
    """Outside data with a version: a background task publishes, the cycle reads (`cycle.value(published)`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None
        self.version = 0
        self.latest: T | None = None
        self.about = ""

    def publish(self, value: T, *, about: str = "") -> None:
        """`about`: what it is, from when and from where; `mooring explain` shows it beside decisions that read it."""
        self.latest, self.about = value, about
        self.version += 1
        self._at = self._clock.monotonic()

    @property
    def age(self) -> float | None:
        """Seconds since the last publication; None if there was none."""
        return None if self._at is None else self._clock.monotonic() - self._at


class Pods(Protocol):
    """Pods by what they look like: those on nodes, and those that wait."""

    def placed(self, where: PodsWhere) -> Sequence[PlacedPod]:
        """Those on a node, the assumed ones among them."""
        ...

    def pending(self, where: PodsWhere) -> Sequence[Pod]:
        """Those of our profiles without a node, not even an assumed one; the pod that is being decided counts."""
        ...

    def nominated(self) -> Mapping[str, Sequence[PlacedPod]]:
        """By node name, the pending pods that preemption nominated to it. Nodes without any are left out, and so are
        nodes that do not exist: nothing is kept free there.
        """
        ...


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that a permit plugin lets wait: reserved on its node, not bound yet."""

    pod: Pod
    node: str
    waiting_for: frozenset[str]
    """The plugins that have not allowed it yet."""


class WaitingPods(Protocol):
    """The pods that wait on permit."""

    def __iter__(self) -> Iterator[WaitingPod]: ...
    def allow(self, uid: str, plugin: Plugin | str) -> bool:
        """Allow the pod in the name of this plugin, mostly `self`; it is bound when all plugins have allowed it.

        False: no such pod. Does nothing where the pod does not wait for the plugin; raises `Fault` for a name that is
        none of those that it waits for.
        """
        ...

    def reject(self, uid: str, plugin: Plugin | str, reason: str) -> bool:
        """Reject the pod with this reason: it is unreserved, forgotten and requeued. False: no such pod."""
        ...


class Queue(Protocol):
    """The part of the scheduling queue that plugins may use."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods now, whatever they wait for."""
        ...


def permit_plugin(plugin: Plugin | str, pod: Pod, awaited: Collection[str]) -> str:
    """The name under which a plugin allows a pod. Raises `Fault` for a text that names none of the `awaited` ones."""
    if not isinstance(plugin, str):
        return plugin.name
    if plugin not in awaited:
        known = ", ".join(sorted(awaited))
        raise Fault(f'pod {pod.key} does not wait for a plugin "{plugin}"; it waits for {known}: pass `self`')
    return plugin


class Preemptions(Protocol):
    """The evictions that the scheduler carries out for pending pods, as planned by a `Plan`."""

    def is_under_way(self, uid: str) -> bool:
        """Whether victims of this pod are still to be evicted."""
        ...

    def being_evicted(self) -> Sequence[PlacedPod]:
        """The victims of all pods that are on their nodes still, and that the watch does not show terminating yet."""
        ...


class PodGroupMembers(Protocol):
    """The pods that name one pod group, as the scheduler knows them now."""

    @property
    def all_count(self) -> int: ...
    @property
    def scheduled_count(self) -> int:
        """How many are on a node: bound, or assumed there. In a pod group cycle, also those that are tried there."""
        ...

    @property
    def tried_count(self) -> int:
        """How many of those on a node are only tried there, in the pod group cycle under way."""
        ...

    @property
    def preempted_count(self) -> int:
        """How many of those on a node are terminating because a scheduler evicted them."""
        ...

    @property
    def most_bound_count(self) -> int:
        """The highest number that was bound at once, as far as this process has seen, without those that a scheduler
        evicts."""
        ...

    @property
    def unscheduled(self) -> Sequence[Pod]: ...
    @property
    def scheduled(self) -> Sequence[PlacedPod]: ...


class PodGroups(Protocol):
    """Pod groups (scheduling.k8s.io): the objects, and their pods. Without the gate GenericWorkload there are none."""

    def get(self, namespace: str, name: str) -> PodGroup | None:
        """The PodGroup object; None if there is none (yet)."""
        ...

    def members(self, namespace: str, name: str) -> PodGroupMembers | None:
        """The pods that name this group, whether or not its object exists; None if there are none."""
        ...


class Binder(Protocol):
    """Writes the binding of a pod to the API server. Raises `Fault` when that fails."""

    async def bind(
        self,
        pod: Pod,
        node: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Bind the pod, and set these annotations and labels on it in the same write.

        What plugins of this attempt added by `cycle.add_to_binding` is written too; of two values for one key, the one
        given here. API servers older than 1.35 ignore labels.
        """
        ...


class PodWriter(Protocol):
    """Sets annotations and labels of pods. Taking it in a constructor grants the scheduler the right to patch pods.

    What is known when the pod is bound is better written with the binding (`cycle.add_to_binding`): that needs no right
    and no write of its own.
    """

    async def patch(
        self,
        pod: Pod,
        *,
        annotations: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str | None] | None = None,
    ) -> Pod:
        """Set these keys and leave all others as they are; None removes a key. Retried while the server is overloaded.

        Returns the pod as the API server has it now. Raises `Fault` when that fails: `ApiError` with the reason
        "NotFound", "Conflict" or "Invalid" where the pod is gone, also if another one has its name by now. In shadow
        mode nothing is written and every call fails.
        """
        ...


class VolumeWriter(Protocol):
    """Writes which volume is for which claim, and where a new one is to be made.

    Each returns the object as the API server has it now. Raises `Fault` when that fails: also when the object there is
    not of the given `resourceVersion` any more, because then another client has written it.
    """

    async def write_claim_ref(self, volume: PersistentVolume) -> PersistentVolume: ...
    async def write_selected_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim: ...


class ClaimWriter(Protocol):
    """Writes to ResourceClaims the pods that they are reserved for and their allocation.

    Each returns the claim as the API server has it now, and `Objects[ResourceClaim]` has it from then on. Raises
    `Fault` when that fails; `ApiError` with the reason "Conflict" when the claim there is not of the given
    `resourceVersion` any more.
    """

    async def read(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim of this name as it is now."""
        ...

    async def create(self, claim: ResourceClaim, *, generate_name: str) -> ResourceClaim:
        """Make a claim with this spec, annotations and owners. It is shown when the watch brings it."""
        ...

    async def add_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        """Add the finalizer that an allocated claim needs."""
        ...

    async def write_reserved_for(self, claim: ResourceClaim, *, with_allocation: bool) -> ResourceClaim:
        """The pods that the claim is reserved for, and when it was allocated; what was allocated only if it is new."""
        ...

    async def remove_reserved_for(self, claim: ResourceClaim, uid: str) -> ResourceClaim: ...
    async def delete(self, claim: ResourceClaim) -> None:
        """Take the finalizer away, and this very claim. Nothing happens if it is gone."""
        ...

    async def write_extended_claim(
        self, pod: Pod, claim: ResourceClaim, mappings: Sequence[ContainerExtendedResourceRequest]
    ) -> None:
        """Write to the pod's status which claim stands for its extended resources, and which container has what."""
        ...


class PodEvents(Protocol):
    """Events about a pod, in the name of its profile."""

    def record(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        """Record an event of the pod. Returns at once."""
        ...


class ProblemReports(Protocol):
    """Events about outside data that fails or is wrong: on nodes, and on the scheduler (the Lease of its election).

    Call it after each look at the source. A warning is written when a problem begins, and not again until it ended and
    came back; only the leader writes. Each returns at once. A reason is one CamelCase word, and has no numbers.
    """

    def on_nodes(self, problems: Mapping[tuple[str, str], str]) -> None:
        """All problems that nodes have now: (node name, reason) and a note. At most five have an event at a time."""
        ...

    def failing(self, reason: str, note: str) -> None:
        """The source as a whole fails now; of one reason there is one warning until `recovered`."""
        ...

    def recovered(self, reason: str, note: str) -> None:
        """The source does not fail now. A normal event, if there was a warning that it did."""
        ...


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server responded: any status, also one that is no success."""

    status: int
    body: bytes
    url: str = ""
    """Where it came from, without query and credentials: for messages."""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The body as JSON. Raises `Fault`, with address and status, if it is none or the status is no success.

        A body that comes with another status is there as `body`.
        """
        server = self.url or "the server"
        if not self.is_success:
            raise Fault(f"{server} responded with status {self.status}")
        try:
            return decode(self.body)
        except msgspec.DecodeError as error:
            raise Fault(f"{server} responded with something that is not JSON: {error}") from error


class Http(Protocol):
    """HTTP GET for background tasks. Raises `Fault` with host and cause when there is no response in time.

    Redirects are not followed, and a body has at most 32 MiB. Any status is a response; `HttpResponse.json()` accepts a
    success only.
    """

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str | None = None,
    ) -> HttpResponse: ...


class CounterMetric(Protocol):
    """A number that only grows."""

    def inc(self, amount: float = 1.0, /, **labels: str) -> None: ...


class GaugeMetric(Protocol):
    """A number that goes up and down."""

    def set(self, value: float, /, **labels: str) -> None: ...


class HistogramMetric(Protocol):
    """How often which values were seen."""

    def observe(self, value: float, /, **labels: str) -> None: ...


class Metrics(Protocol):
    """Numbers of the plugin's own, for Prometheus: served at /metrics with the scheduler's.

    Make each metric once, in the constructor. Labels are named there and given with each call:
    `rejected = metrics.counter("quota_rejections_total", "Pods over quota.", "team")`, `rejected.inc(team="red")`.
    """

    def counter(self, name: str, description: str, *labels: str) -> CounterMetric: ...
    def gauge(self, name: str, description: str, *labels: str) -> GaugeMetric: ...
    def histogram(
        self, name: str, description: str, *labels: str, buckets: tuple[float, ...] = ()
    ) -> HistogramMetric: ...


class Background(Protocol):
    """Supervised background work: what fails is logged under the plugin's name and started again, with backoff.

    Register work in `start()`; it ends when the scheduler does.
    """

    def every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do this now, and again each time so many seconds have passed."""
        ...

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this until it returns."""
        ...
