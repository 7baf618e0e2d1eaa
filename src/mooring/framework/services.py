"""What a plugin's constructor may ask for, by the type of its parameters.

    def __init__(self, args: QuotaArgs, quotas: Objects[Quota], log: Log) -> None: ...

Each service is narrow, and there is none that reaches everything. Also available: the plugin's own `Args` class,
`Clock` and `Log` (from `mooring.base`) and `FeatureGates`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from mooring.base.clock import Clock
from mooring.framework.cycle import PodsWhere
from mooring.objects.core import Pod
from mooring.objects.meta import KubeObject
from mooring.objects.placed import PlacedPod

K = TypeVar("K", bound=KubeObject, covariant=True)
T = TypeVar("T")


class Objects(Protocol[K]):
    """All objects of one kind, kept up to date by a watch. Asking for it is what makes the kind watched.

    Until the first list has come, pods of the profiles that use the plugin wait; its answers are then complete.
    """

    def get(self, name: str, namespace: str | None = None) -> K | None: ...
    def all(self) -> Iterable[K]: ...
    @property
    def synced(self) -> bool: ...


class Published(Generic[T]):
    """Outside data with a version: a background task publishes, the cycle reads (`cycle.value(published)`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at: float | None = None
        self.version = 0
        self.latest: T | None = None

    def publish(self, value: T) -> None:
        self.latest = value
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


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pod that a permit plugin asked to wait: reserved on its node, not bound yet."""

    pod: Pod
    node: str
    waiting_for: frozenset[str]
    """The plugins that have not allowed it yet."""


class WaitingPods(Protocol):
    """The pods that wait on permit."""

    def __iter__(self) -> Iterator[WaitingPod]: ...
    def allow(self, uid: str, plugin: str) -> bool:
        """One plugin's consent; the pod goes on when all that asked to wait have given theirs. False: no such pod."""
        ...

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        """The pod is taken back from its node and refused with this reason. False: no such pod."""
        ...


class Queue(Protocol):
    """The scheduling queue, as far as a plugin may push it."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods now, whatever they wait for."""
        ...

    def retry_after(self, pod: Pod, seconds: float) -> None:
        """Try this pod again after a while, if it still waits then."""
        ...


class Binder(Protocol):
    """Writes the binding of a pod to the API server. Raises `Fault` when that fails."""

    async def bind(self, pod: Pod, node: str) -> None: ...


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Http(Protocol):
    """HTTP GET for background tasks. Raises `Fault` with host and cause when there is no answer in time."""

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str | None = None,
    ) -> HttpAnswer: ...


class Background(Protocol):
    """Supervised background work: what fails is logged under the plugin's name and started again, with backoff.

    Ask for work in `start()`; it ends when the scheduler does.
    """

    def every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do this now, and again each time so many seconds have passed."""
        ...

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this until it returns."""
        ...
