"""The services that a plugin's constructor may ask for, in memory and in the test's hands.

    services = Services(objects={Quota: [quota]}, pods=[a_pod(), a_pod(node="node-1")])
    plugin = a_plugin(TeamQuota, services, label="team")

Time stands still until `services.clock.advance(…)`, background work runs when `await services.background.step()` says
so, and what the plugin did is there to be read: `services.queue.activated`, `services.log.lines`, …
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from mooring.base.clock import Clock, ManualClock
from mooring.base.errors import Fault, OperatorMistake, Problem
from mooring.base.log import Log
from mooring.framework import (
    Args,
    Background,
    Binder,
    FeatureGates,
    Http,
    HttpAnswer,
    Objects,
    Plugin,
    Pod,
    Pods,
    Published,
    Queue,
    WaitingPod,
    WaitingPods,
)
from mooring.framework.registry import build, check_contract
from mooring.objects.meta import KubeObject
from mooring.objects.placed import placed
from mooring.state import State

P = TypeVar("P", bound=Plugin)
T = TypeVar("T")


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


class MemoryObjects:
    """All objects of one kind, as the test put them there."""

    def __init__(self, items: Iterable[KubeObject] = ()) -> None:
        self._items: dict[tuple[str, str], KubeObject] = {}
        self.synced = True
        for item in items:
            self.put(item)

    def put(self, item: KubeObject) -> None:
        """Add it, or replace the one of that name."""
        self._items[(item.namespace, item.name)] = item

    def remove(self, item: KubeObject) -> None:
        del self._items[(item.namespace, item.name)]

    def get(self, name: str, namespace: str | None = None) -> Any:
        return self._items.get((namespace or "", name))

    def all(self) -> Iterable[Any]:
        return list(self._items.values())


class MemoryWaitingPods:
    """The pods that wait on permit, and what became of them."""

    def __init__(self) -> None:
        self._waiting: dict[str, WaitingPod] = {}
        self.allowed: list[str] = []
        """Names of the pods that all their plugins have allowed."""
        self.rejected: list[tuple[str, str]] = []
        """Names and reasons."""

    def put(self, pod: Pod, node: str, plugin: str) -> None:
        """This pod waits for this plugin's consent."""
        known = self._waiting.get(pod.uid)
        plugins = {plugin} | (known.waiting_for if known else frozenset())
        self._waiting[pod.uid] = WaitingPod(pod, node, frozenset(plugins))

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._waiting.values()))

    def allow(self, uid: str, plugin: str) -> bool:
        waiting = self._waiting.get(uid)
        if waiting is None:
            return False
        left = waiting.waiting_for - {plugin}
        if left:
            self._waiting[uid] = WaitingPod(waiting.pod, waiting.node, left)
        else:
            del self._waiting[uid]
            self.allowed.append(waiting.pod.name)
        return True

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        waiting = self._waiting.pop(uid, None)
        if waiting is None:
            return False
        self.rejected.append((waiting.pod.name, reason))
        return True


class MemoryQueue:
    """What plugins asked of the queue."""

    def __init__(self) -> None:
        self.activated: list[str] = []
        self.retries: list[tuple[str, float]] = []

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.name for pod in pods]

    def retry_after(self, pod: Pod, seconds: float) -> None:
        self.retries.append((pod.name, seconds))


class MemoryHttp:
    """Answers from a table: url → JSON value, `HttpAnswer`, or an exception to raise."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = dict(answers or {})
        self.requests: list[tuple[str, dict[str, str]]] = []
        """What was asked: url and parameters."""

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str | None = None,
    ) -> HttpAnswer:
        self.requests.append((url, dict(params or {})))
        answer = self.answers.get(url, Fault(f"{url} does not answer"))
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, HttpAnswer) else HttpAnswer(200, msgspec.json.encode(answer))


class StepBackground:
    """Background work that runs when the test says so. What fails, fails the test."""

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
        """Run what was asked to run once, and a round of everything else."""
        once, self._once = self._once, []
        for work in [*once, *(work for _, work in self._repeated)]:
            await work()


class MemoryBinder:
    """Bindings that were asked for."""

    def __init__(self) -> None:
        self.bound: list[tuple[str, str]] = []
        """Pod (namespace/name) and node."""
        self.failure: Exception | None = None

    async def bind(self, pod: Pod, node: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.bound.append((pod.key, node))


class Services:
    """Everything a constructor may ask for."""

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
        self.waiting_pods = MemoryWaitingPods()
        self.queue = MemoryQueue()
        self.binder = MemoryBinder()
        self._objects = {kind: MemoryObjects(items) for kind, items in (objects or {}).items()}
        self._published: dict[Any, Published[Any]] = {}
        for kind, value in (published or {}).items():
            self.published(kind).publish(value)

    def objects(self, kind: type[KubeObject]) -> MemoryObjects:
        """The objects of a kind: what a plugin gets that asks for `Objects[kind]`."""
        return self._objects.setdefault(kind, MemoryObjects())

    def published(self, kind: type[T]) -> Published[T]:
        """The outside data of a type: what a plugin gets that asks for `Published[kind]`."""
        return self._published.setdefault(kind, Published(self.clock))

    def provide(self, asked: Any) -> Any:
        """What a parameter of this type gets. LookupError: there is no such service."""
        if typing.get_origin(asked) is Objects:
            return self.objects(typing.get_args(asked)[0])
        if typing.get_origin(asked) is Published:
            return self.published(typing.get_args(asked)[0])
        return {
            Clock: self.clock,
            Log: self.log,
            FeatureGates: self.gates,
            Http: self.http,
            Background: self.background,
            Pods: self.state,
            WaitingPods: self.waiting_pods,
            Queue: self.queue,
            Binder: self.binder,
        }[asked]


def a_plugin(cls: type[P], services: Services | None = None, /, **arguments: Any) -> P:
    """An instance of the plugin, checked against the contract, with these arguments (snake_case) and services.

    Arguments take the way they take from a configuration file: wrong ones raise `OperatorMistake`.
    """
    given = services or Services()
    check_contract(cls, f"class {cls.__qualname__}")

    def provide(asked: Any) -> Any:
        if inspect.isclass(asked) and issubclass(asked, Args):
            return _checked(asked, arguments)
        return given.provide(asked)

    return cast(P, build(cls, provide))


def _checked(kind: type[Args], arguments: Mapping[str, Any]) -> Args:
    on_the_wire = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    document = {on_the_wire.get(name, name): msgspec.to_builtins(value) for name, value in arguments.items()}
    try:
        args = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise OperatorMistake(f"{kind.__name__}: {error}") from error
    if problems := [Problem(path, message) for path, message in args.mistakes()]:
        raise OperatorMistake(f"{kind.__name__} has {len(problems)} problem(s).", problems)
    return args
