"""The extension points: who calls them, when, and what each result causes.

The order of a pod's life: pre_enqueue → sort_key → pre_filter → filter → (post_filter if no node is left) →
pre_score → score → normalize → reserve → permit → pre_bind → bind → post_bind. Pods of a pod group are tried together,
for each placement of placement_generate; placement_score chooses one. The synchronous points never wait;
those marked async may, for `Plugin.longest_wait_seconds`. An exception anywhere is a fault: this attempt fails with a
status that names the plugin, the pod is tried again with backoff, and the scheduler goes on with the others.

The signatures below are the contract: type checkers see them on `Plugin`, so that they reject a method that does not
fit, and editors offer them; the registry checks arity and `async` against them when a plugin is loaded. At run time
`Plugin` has none of them, because a plugin has the points whose methods it defines.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Any

from mooring.framework.cycle import Cycle
from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.pod_groups import GroupPlacement, PodGroupInfo, PodGroupPlan, PodGroupTrial, ProposedPlacement
from mooring.framework.queued_pod import QueuedPod
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
from mooring.framework.what_if import Diagnosis, WhatIf
from mooring.objects.core import Pod
from mooring.objects.pod_groups import PodGroup


class Point(Enum):
    """An extension point: its name in configuration files, upstream's interface name, the methods that make it."""

    # Members are compared by identity; Enum would hash their names, in Python, on the path of every pod.
    __hash__ = object.__hash__

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
    PLACEMENT_GENERATE = ("placementGenerate", "PlacementGeneratePlugin", ("placement_generate",))
    PLACEMENT_SCORE = ("placementScore", "PlacementScorePlugin", ("placement_score",))

    def __init__(self, config_name: str, interface: str, methods: tuple[str, ...]) -> None:
        self.config_name = config_name
        self.interface = interface
        self.methods = methods


BY_CONFIG_NAME = {point.config_name: point for point in Point}

CAN_REFUSE = (Point.PRE_ENQUEUE, Point.PRE_FILTER, Point.FILTER, Point.RESERVE, Point.PERMIT)
"""Points whose refusal leaves a pod waiting for an event."""


def points_of(plugin: type) -> tuple[Point, ...]:
    """The extension points a plugin class has, in the order of a pod's life."""
    return tuple(point for point in Point if any(callable(getattr(plugin, name, None)) for name in point.methods))


class ExtensionPoints:
    """Every method that a plugin may define. It defines those it needs; there is nothing to inherit from here."""

    def pre_enqueue(self, pod: Pod, /) -> Refusal | None:
        """Keep a pod out of the queue.

        Called when a pod is about to enter the active or the backoff queue. None admits it. A refusal gates it: no
        event, no condition; the plugin is called again when one of its own `events()` happens.
        """
        raise NotImplementedError

    def sort_key(self, queued: QueuedPod, /) -> Any:
        """Order the queue: the pod with the lowest key is tried first.

        One per scheduler; all profiles share it. Called at each entry into the active or the backoff queue, so the key
        must depend on nothing that changes while the pod waits there.
        """
        raise NotImplementedError

    def sign(self, pod: Pod, /) -> Hashable | None:
        """Return what of the pod this plugin reads, so that results can be shared by pods that agree in it.

        None means: do not share. Optional; a plugin without it is called every time.
        """
        raise NotImplementedError

    def pre_filter(self, pod: Pod, cycle: Cycle, /) -> Any | Skip | Refusal | OnlyNodes:
        """Read the pod once, before any node.

        Called at the start of an attempt. What it returns is the plugin's state for this cycle (`cycle.filter_state`);
        None is a state too. `Skip` leaves its filter out. `OnlyNodes` limits the evaluated nodes. A refusal ends the
        attempt for all nodes: after an unschedulable one the other pre_filters still run, after an unresolvable one
        they do not. A plugin that skips or refuses and has a post_filter or score that reads its state leaves it by
        `cycle.set_filter_state`.
        """
        raise NotImplementedError

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> Rejection | None:
        """Reject nodes that cannot run the pod.

        Called after every pre_filter has passed. A node survives when no plugin rejects it.
        `Rejection(reason, code=UNRESOLVABLE)` keeps preemption from considering the node. `filter_nodes` is the same
        rule for many nodes; a plugin may have either or both.
        """
        raise NotImplementedError

    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle, /) -> Iterable[Rejections]:
        """`filter`, for many nodes at once: which rows are rejected, for each reason."""
        raise NotImplementedError

    def filter_nodes_in_what_if(self, pod: Pod, nodes: NodeRows, cycle: Cycle, /) -> Iterable[Rejections]:
        """`filter_nodes` in a what-if of preemption: each node as if pods were evicted from it alone. Optional.

        For a plugin whose `pre_filter` reads pods on nodes. It does not run again: its state is that before the
        eviction, but counts and tallies that are read at these nodes are those after it (`at_rows`, `compute`,
        `lowest_at`, `total_at`). Without it, or where it raises, preemption tries one node after the other.
        """
        raise NotImplementedError

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf, /) -> Plan | Refusal:
        """Propose how to make room when no node is left.

        Called in the profile's order until one plugin returns a plan. The plan is data; the scheduler carries it out
        and the pod waits. The reasons of refusals are joined and follow the failure message.
        """
        raise NotImplementedError

    def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle, /) -> Any | Skip:
        """Read the feasible nodes once, before scores.

        Called when at least two nodes are feasible. What it returns is the plugin's state (`cycle.score_state`). `Skip`
        leaves its score out of this cycle. It cannot refuse.
        """
        raise NotImplementedError

    def score(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> int:
        """Return how good a feasible node is: more is better.

        Called when at least two nodes are feasible. After normalisation each score must lie in 0…100; it is then
        multiplied by the plugin's weight. `score_nodes` is the same rule for many nodes; a plugin may have either or
        both.
        """
        raise NotImplementedError

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle, /) -> IntArray:
        """`score`, for many nodes at once: one number per row."""
        raise NotImplementedError

    def normalize(self, pod: Pod, nodes: NodeRows, scores: IntArray, cycle: Cycle, /) -> IntArray:
        """Bring this plugin's raw scores to 0…100 where no declared `normalizer` fits.

        Called once with all raw scores, in the order of the nodes.
        """
        raise NotImplementedError

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> Refusal | None:
        """Claim what the pod will use on the chosen node, in memory.

        Called after the pod is assumed. A refusal undoes: `unreserve` of *all* reserve plugins, in reverse order.
        """
        raise NotImplementedError

    def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> Awaitable[None] | None:
        """Give back what `reserve` claimed. May be async.

        Called when reserve, permit, pre_bind or bind fails, also if this plugin has reserved nothing yet: it must be
        idempotent.
        """
        raise NotImplementedError

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> Allow | Wait | Refusal | None:
        """Allow, delay or refuse the binding.

        Called after reserve. `Allow` (or None) goes on. `Wait(seconds)` holds the pod, reserved, until `WaitingPods`
        allows or rejects it or the time is up (15 minutes at most); the scheduler goes on with other pods. A refusal
        undoes.
        """
        raise NotImplementedError

    def needs_pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> bool:
        """Return whether `pre_bind` has work to do for this pod. Optional.

        False: it is not called. True, or without this method: the pod's status names the node (nominatedNodeName)
        while the work is done.
        """
        raise NotImplementedError

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> Refusal | None:
        """Do what must be done before the pod is bound, such as attaching a volume. May wait.

        A refusal or exception undoes the reservation; the pod is tried again with backoff. Plugins are called in order;
        neighbours with `pre_bind_in_parallel` at the same time, and the first of them that fails cancels the others. A
        pod of higher priority that takes the place cancels too.
        """
        raise NotImplementedError

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> Bound | Skip | Refusal:
        """Bind the pod. May wait. Plugins are tried in order: the first that does not return `Skip` has bound it."""
        raise NotImplementedError

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle, /) -> None:
        """Observe that the pod is bound. May wait; what it returns changes nothing."""
        raise NotImplementedError

    def explain(self, pod: Pod, /) -> Iterable[str]:
        """Return what this plugin knows of the pod that no decision shows, in sentences for people. Optional.

        Which group or quota the pod belongs to, how far that is, what is missing: "pod group default/train: 3 of 4
        members exist". `mooring explain` calls it for every plugin of the pod's profile, wherever the pod is: pending,
        gated, waiting on permit or bound; on the scheduler that runs, and on one that decides again. It reads the
        plugin's own services and changes nothing. A sentence needs neither the plugin's name nor a full stop.
        """
        raise NotImplementedError

    def placement_generate(self, group: PodGroupInfo, nodes: NodeRows, /) -> Sequence[GroupPlacement] | Refusal:
        """Offer sets of nodes that the pods of a group may be placed on together.

        Called once for each attempt of a pod group, with all nodes, where TopologyAwareWorkloadScheduling is on. The
        group is tried on one placement after the other. One plugin is called: the first of the profile. Without one
        all nodes are the only placement. A refusal, or no placement, fails the attempt of all pods.
        """
        raise NotImplementedError

    def placement_score(self, group: PodGroupInfo, proposed: ProposedPlacement, /) -> int:
        """Return how good a placement is that the group fits: more is better.

        Called when the group fits at least two placements. After `normalize_placement_scores` each score must lie in
        0…100; it is then multiplied by the plugin's weight.
        """
        raise NotImplementedError

    def normalize_placement_scores(self, group: PodGroupInfo, scores: Sequence[int], /) -> Sequence[int]:
        """Bring this plugin's raw placement scores to 0…100, in the same order. Optional."""
        raise NotImplementedError

    async def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], trial: PodGroupTrial, /
    ) -> PodGroupPlan | Refusal:
        """Propose how to make room for a pod group that does not fit. Needs WorkloadAwarePreemption.

        Called once for each attempt, of the first PostFilter plugin that has it, after all pods of the group were
        tried. The plan is data; the scheduler carries it out and the pods wait.
        """
        raise NotImplementedError

    def pod_group_unschedulable(self, group: PodGroup, /) -> PodGroupPlan | None:
        """Learn that a pod group does not fit, and that no preemption makes room for it. Optional.

        Called once for each such attempt, of every plugin of the profile that has it, after `pod_group_post_filter`;
        not after an attempt that failed with an error. A plan evicts pods, such as members of the group that hold
        nodes without the others; they count as victims in the metrics of preemption.
        """
        raise NotImplementedError

    async def start(self) -> None:
        """Called once before the first decision. May wait for a minute; what lasts longer belongs into `Background`."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Called at shutdown, and when a new configuration does without the plugin. May wait."""
        raise NotImplementedError


METHODS = {name: method for name, method in vars(ExtensionPoints).items() if inspect.isfunction(method)}
"""Every method of the contract by its name, with the signature that it must have."""
