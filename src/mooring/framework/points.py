"""The extension points: who calls them, when, and what each answer causes.

The order of a pod's life: pre_enqueue → sort_key → pre_filter → filter → (post_filter if no node is left) →
pre_score → score → normalize → reserve → permit → pre_bind → bind → post_bind. The synchronous points never wait;
those marked async may, for `Plugin.longest_wait_seconds`. An exception anywhere is a fault: this attempt fails with a
status that names the plugin, the pod is tried again with backoff, and the scheduler goes on with the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Iterable
from enum import Enum
from typing import Any, Protocol

from mooring.framework.cycle import Cycle, Evidence, WhatIf
from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.plugin import Plugin, QueuedPod
from mooring.framework.verdicts import (
    Allow,
    Bound,
    IntArray,
    OnlyNodes,
    Plan,
    Refusal,
    Rejection,
    Rejections,
    Skip,
    Wait,
)
from mooring.objects.core import Pod


class Point(Enum):
    """An extension point: its name in configuration files, upstream's interface name, the methods that make it."""

    PRE_ENQUEUE = ("preEnqueue", "PreEnqueuePlugin", ("pre_enqueue",))
    QUEUE_SORT = ("queueSort", "QueueSortPlugin", ("sort_key",))
    PRE_FILTER = ("preFilter", "PreFilterPlugin", ("pre_filter",))
    FILTER = ("filter", "FilterPlugin", ("filter", "filter_nodes"))
    POST_FILTER = ("postFilter", "PostFilterPlugin", ("post_filter",))
    PRE_SCORE = ("preScore", "PreScorePlugin", ("pre_score",))
    SCORE = ("score", "ScorePlugin", ("score", "score_nodes"))
    RESERVE = ("reserve", "ReservePlugin", ("reserve", "unreserve"))
    PERMIT = ("permit", "PermitPlugin", ("permit",))
    PRE_BIND = ("preBind", "PreBindPlugin", ("pre_bind",))
    BIND = ("bind", "BindPlugin", ("bind",))
    POST_BIND = ("postBind", "PostBindPlugin", ("post_bind",))

    def __init__(self, config_name: str, interface: str, methods: tuple[str, ...]) -> None:
        self.config_name = config_name
        self.interface = interface
        self.methods = methods


BY_CONFIG_NAME = {point.config_name: point for point in Point}

CAN_REFUSE = (Point.PRE_ENQUEUE, Point.PRE_FILTER, Point.FILTER, Point.RESERVE, Point.PERMIT)
"""Points whose refusal leaves a pod waiting for an event."""


def points_of(plugin: type[Plugin]) -> tuple[Point, ...]:
    """The extension points a plugin class has, in the order of a pod's life."""
    return tuple(point for point in Point if any(callable(getattr(plugin, name, None)) for name in point.methods))


class PreEnqueuePoint(Protocol):
    """Keeps a pod out of the queue.

    Called when a pod is about to enter the active or the backoff queue. None lets it in. A refusal gates it: no
    event, no condition; it is asked again when one of the plugin's own `events()` happens.
    """

    def pre_enqueue(self, pod: Pod) -> Refusal | None: ...


class SortPoint(Protocol):
    """Says which pod is tried first: the lowest key.

    One per scheduler; all profiles share it. Computed at each entry into the active or the backoff queue, so it must
    depend on nothing that changes while the pod waits there.
    """

    def sort_key(self, queued: QueuedPod) -> Any: ...


class SignPoint(Protocol):
    """Says what of the pod this plugin reads, so that answers can be shared by pods that agree in it.

    None means: do not share. Optional; a plugin without it is asked every time.
    """

    def sign(self, pod: Pod) -> Hashable | None: ...


class PreFilterPoint(Protocol):
    """Looks at the pod once, before any node.

    Called at the start of an attempt. What it returns is the plugin's state for this cycle (`cycle.filter_state`);
    None is a state too. `Skip` leaves its filter out. `OnlyNodes` limits the nodes looked at. A refusal ends the
    attempt for all nodes: unschedulable lets the other pre_filters speak first, unresolvable does not. A plugin that
    skips or refuses and has a post_filter or score that reads its state leaves it by `cycle.leave_state`.
    """

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Any | Skip | Refusal | OnlyNodes: ...


class FilterPoint(Protocol):
    """Refuses nodes that cannot run the pod.

    Called after every pre_filter has passed. A node survives when no plugin rejects it. `unresolvable` tells
    preemption not to look at the node. `filter_nodes` is the same meaning for many rows; a plugin may have either
    or both.
    """

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None: ...
    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterable[Rejections]: ...


class PostFilterPoint(Protocol):
    """Proposes how to make room when no node is left.

    Called in order until one returns a plan. The plan is data; the scheduler executes it and the pod waits. The
    reasons of refusals are joined and follow the failure message.
    """

    def post_filter(self, pod: Pod, refused: Evidence, what_if: WhatIf) -> Plan | Refusal: ...


class PreScorePoint(Protocol):
    """Looks at the feasible nodes once, before scores.

    Called when at least two nodes are feasible. What it returns is the plugin's state (`cycle.score_state`). `Skip`
    leaves its score out of this cycle. It cannot refuse.
    """

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> Any | Skip: ...


class ScorePoint(Protocol):
    """Says how good a feasible node is: more is better.

    Called when at least two nodes are feasible. After normalisation each score must lie in 0…100; it is then
    multiplied by the plugin's weight. `score_nodes` is the same meaning, one number per row.
    """

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int: ...
    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray: ...


class NormalizePoint(Protocol):
    """Brings this plugin's raw scores to 0…100 where no declared `normalizer` fits.

    Called once with all raw scores, in the order of the nodes.
    """

    def normalize(self, pod: Pod, nodes: NodeRows, scores: IntArray, cycle: Cycle) -> IntArray: ...


class ReservePoint(Protocol):
    """Claims what the pod will use on the chosen node, in memory.

    Called after the pod is assumed. A refusal undoes: `unreserve` of *all* reserve plugins, in reverse order, also of
    those not reserved yet, so it must be idempotent. It is called too when permit, pre_bind or bind fails.
    """

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None: ...
    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Awaitable[None] | None: ...


class PermitPoint(Protocol):
    """The last word before binding.

    Called after reserve. `Allow` (or None) goes on. `Wait(seconds)` holds the pod, reserved, until `WaitingPods` allows
    or rejects it or the time is up (15 minutes at most); the scheduler goes on with other pods. A refusal undoes.
    """

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait | Refusal | None: ...


class PreBindPoint(Protocol):
    """Work that must be done before the pod is bound, such as attaching a volume. May wait.

    A refusal or exception undoes the reservation; the pod is tried again with backoff. Plugins are asked in order;
    neighbours with `pre_bind_in_parallel` at the same time, and the first of them that fails cancels the others. A
    pod of higher priority that takes the place cancels too. `needs_pre_bind` is optional and says before whether there
    is work for this pod: if not, pre_bind is not called; if so, or if nothing says otherwise, the pod's status names
    the node (nominatedNodeName) while the work is done.
    """

    def needs_pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool: ...
    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None: ...


class BindPoint(Protocol):
    """Binds the pod. May wait. Plugins are tried in order: the first that does not answer `Skip` has bound it."""

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound | Skip | Refusal: ...


class PostBindPoint(Protocol):
    """Informed after the pod is bound. May wait; its answer changes nothing."""

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...


class LifecyclePoint(Protocol):
    """`start` runs once before the first decision, `stop` at shutdown. May wait: `start` for a minute, and what lasts
    longer belongs into the background."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
