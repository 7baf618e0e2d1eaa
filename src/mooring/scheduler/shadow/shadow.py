"""Watches what another scheduler does with its pods and compares each action with our own decision.

Their decision was taken on a state between the moment in which we first saw the pod and the moment in which the watch
shows what they did; we never see which. So it is compared with the state just before the action appears (pods bound
until then count), and a difference is reported only if no other view of that period explains it:

- the same state with the bindings around it in the order of the pods' turns, and with pods that were just deleted:
their bindings run concurrently with their decisions;
- our own earlier decision, where nothing was bound since, or where their work before the binding (volumes and
  devices for their node) has already changed what we see.

What cannot be compared is reported as such, with the reason. Nothing here waits or writes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import msgspec
import numpy as np

from mooring.base.clock import Clock
from mooring.engine import Decide, Decision, DecisionCache, Profile, decide
from mooring.engine.filtering import nodes_to_find
from mooring.engine.time_budget import TimeBudget
from mooring.objects.core import Pod
from mooring.objects.quantity import BadQuantity
from mooring.queue import SchedulingQueue
from mooring.queue.queued_pod_info import Place
from mooring.scheduler.shadow.comparison import Comparison, Earlier, Moment, Subject
from mooring.scheduler.shadow.decision_order import BESIDE_SECONDS, DecisionOrder, Turn
from mooring.scheduler.shadow.judging import (
    Cause,
    Judgement,
    Result,
    is_looked_at,
    judge_binding,
    judge_nomination,
    judge_refusal,
    judge_room,
    not_comparable,
)
from mooring.state import State

REMEMBERED_TIES = 200
MOST_AWAITED = 64

SEEN_WITH_NODE = "it had its node already when we first saw it"
MISSED = "it got its node while the watch was interrupted"
GONE = "it went before it got a node"
PLACED_SOON = "they placed it a moment later: the cluster had changed while they decided"
CHANGED = "the cluster changed while they decided: their message was not true before, and is not now"
EXTENDED = "extenders take part, and were called when the pod arrived; they may respond differently by now"

Judge = Callable[[], tuple[Judgement, Decision | None]]


@dataclass(slots=True)
class _Pending:
    """A pending pod of the other scheduler."""

    pod: Pod
    turn: Turn
    earlier: Earlier | None = None
    announced: str = ""
    """The node that they named before the binding, and that has been compared already."""
    is_compared: bool = False
    is_refused: bool = False
    """It was rejected, and waits for an event."""


@dataclass(slots=True)
class _OpenDifference:
    """A difference that bindings in flight may still explain."""

    comparison: Comparison
    judge: Judge
    turn: Turn
    since: float
    awaited: set[str]
    """The pods whose turn was before, and of which nothing has been seen yet."""


class Shadow:
    """Calls `report` with each comparison, once."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: State,
        queue: SchedulingQueue,
        clock: Clock,
        report: Callable[[Comparison], None],
        *,
        shares: Mapping[str, int] | None = None,
        hindrance: Callable[[Pod], str | None] = lambda _pod: None,
        is_extended: Callable[[Pod], bool] = lambda _pod: False,
        budget: TimeBudget | None = None,
        decide: Decide = decide,
    ) -> None:
        """`shares` is per profile how many per cent of the nodes they look at (0: kube-scheduler's adaptive rule).

        `hindrance` returns why a pod cannot be decided now, if so; `is_extended` whether extenders take part in it;
        `budget` is the time for one decision, and `decide` takes it.
        """
        self._profiles = profiles
        self._take_decision = decide
        self._theirs = {
            name: Profile(name, profile.points, (shares or {}).get(name, 0), is_extended=profile.is_extended)
            for name, profile in profiles.items()
        }
        self._state = state
        self._queue = queue
        self._clock = clock
        self._report = report
        self._hindrance = hindrance
        self._is_extended = is_extended
        self._budget = budget
        self._cache = DecisionCache()
        self._turns = DecisionOrder(state, clock)
        self._pending: dict[str, _Pending] = {}
        """In the order in which they came or were refused."""
        self._applying: dict[str, Turn] = {}
        """The turns of pods that were bound, until the state counts them on their nodes."""
        self._open_differences: list[_OpenDifference] = []

    @property
    def waiting(self) -> int:
        """How many of their pods wait."""
        return len(self._pending)

    def is_pending(self, uid: str) -> bool:
        return uid in self._pending

    # What we decided ourselves

    def decided(self, pod: Pod, decision: Decision) -> None:
        """Remember it, before anything else is decided: its columns go with the next decision."""
        pending = self._pending.get(pod.uid)
        if pending is None or decision.fault is not None:
            return
        pending.earlier = Earlier(
            self._clock.now(),
            decision.cycle.attempt,
            decision.node,
            _best(decision),
            decision.message,
            decision.plan,
            self._turns.bindings,
        )

    # What the watch shows of their pods, before state and queue are updated

    def shown(self, pod: Pod) -> None:
        """A pod without a node: new, or changed."""
        pending = self._pending.get(pod.uid)
        if pending is None:
            is_refused = _refusal(pod) is not None
            self._pending[pod.uid] = _Pending(pod, self._turns.turn_of(pod), is_refused=is_refused)
            return
        before, pending.pod = pending.pod, pod
        message = _refusal(pod)
        is_news = message is not None and message != _refusal(before)
        nominated = pod.status.nominated_node_name
        if nominated and nominated != before.status.nominated_node_name:
            self._nominated(pending, before, nominated, message if is_news else None)
        elif is_news:
            assert message is not None
            self._refused(pending, before, message)
        if is_news and not pending.is_refused:
            pending.is_refused = True
            self._pending[pod.uid] = self._pending.pop(pod.uid)
            self._awaited_no_longer(pod.uid)

    def bound(self, pod: Pod) -> None:
        """The watch shows a pod of theirs on a node; the state does not count it there yet."""
        node = pod.spec.node_name
        pending = self._pending.pop(pod.uid, None)
        if pending is None:
            self._report_not_compared(pod, Subject.BINDING, {"node": node}, not_comparable(SEEN_WITH_NODE))
            return
        self._applying[pod.uid] = pending.turn
        self._drop_refusals(pod.uid)
        if pending.announced != node:
            self._compare_binding(pending, pending.pod, node)

    def applied(self, uid: str) -> None:
        """State and queue have what the watch showed of the pod."""
        if (turn := self._applying.pop(uid, None)) is not None:
            self._turns.bound(uid, turn)
            self._awaited_no_longer(uid)

    def missed(self, pod: Pod, is_new: bool) -> None:
        """A new list shows a node for the pod: when it got it, and what came before, cannot be known."""
        if self._pending.pop(pod.uid, None) is not None:
            self._drop_refusals(pod.uid)
        elif not is_new:
            return
        self._report_not_compared(pod, Subject.BINDING, {"node": pod.spec.node_name}, not_comparable(MISSED))

    def gone(self, uid: str) -> None:
        """A pod was deleted, theirs or not, waiting or on a node."""
        if (placed := self._state.pod(uid)) is not None:
            self._turns.gone(placed)
        pending = self._pending.pop(uid, None)
        if pending is None:
            return
        self._awaited_no_longer(uid)
        if not pending.is_compared:
            self._report_not_compared(pending.pod, Subject.BINDING, {"node": None}, not_comparable(GONE))

    def absent(self, present: Iterable[str]) -> None:
        """A new list has only these pods."""
        for uid in self._pending.keys() - set(present):
            self.gone(uid)

    def settle(self, *, everything: bool = False) -> None:
        """Report the differences that nothing explained in time. `everything`: we end, and nothing more will come."""
        now = self._clock.monotonic()
        for difference in list(self._open_differences):
            if everything or now - difference.since >= BESIDE_SECONDS:
                self._close(difference)

    # Comparing

    def _compare_binding(self, pending: _Pending, pod: Pod, node: str) -> None:
        uid, earlier = pod.uid, pending.earlier

        def judge() -> tuple[Judgement, Decision | None]:
            with self._turns.without([uid]):
                return self._judged_binding(pod, node)

        def by_earlier() -> Judgement | None:
            if earlier is None or node not in earlier.best:
                return None
            if self._turns.bindings != earlier.bindings and not _has_work_before_binding(pod):
                return None
            ties = len(earlier.best)
            return Judgement(Result.AGREE, f"one of {ties} equally good" if ties > 1 else "best")

        self._compare(pending, pod, Subject.BINDING, {"node": node}, judge, by_earlier)

    def _judged_binding(self, pod: Pod, node: str) -> tuple[Judgement, Decision | None]:
        if (hindered := self._hindered(pod)) is not None:
            return hindered, None
        if self._state.node(node) is None:
            return not_comparable(f"we do not know node {node}"), None
        decision = self._decide(pod)
        if decision.fault is None and not is_looked_at(decision, node):
            # Nominated to another node that will do: judge theirs as if it were not.
            decision = self._decide(_without_nomination(pod))
        looked_at = nodes_to_find(self._theirs[pod.spec.scheduler_name], decision.node_count)
        return judge_binding(decision, node, looked_at), decision

    def _refused(self, pending: _Pending, pod: Pod, message: str) -> None:
        earlier = pending.earlier

        def judge() -> tuple[Judgement, Decision | None]:
            if (hindered := self._hindered(pod)) is not None:
                return hindered, None
            decision = self._decide(pod)
            judgement = judge_refusal(decision, message)
            if judgement.cause is Cause.PLACED and earlier is not None and earlier.node is None:
                return not_comparable(CHANGED), decision
            return judgement, decision

        def by_earlier() -> Judgement | None:
            is_same = earlier is not None and earlier.node is None and earlier.message == message
            return Judgement(Result.AGREE, "no node is feasible, with the same message") if is_same else None

        self._compare(pending, pod, Subject.REFUSAL, {"message": message}, judge, by_earlier)

    def _nominated(self, pending: _Pending, pod: Pod, node: str, message: str | None) -> None:
        """Room is being made for the pod, or it is about to be bound and waits for its volumes or devices."""
        plan = pending.earlier.plan if pending.earlier is not None else None
        if message is None and self._hindered(pod) is None and self._decide(pod).node is not None:
            pending.announced = node
            self._compare_binding(pending, pod, node)
            return

        def judge() -> tuple[Judgement, Decision | None]:
            if (hindered := self._hindered(pod)) is not None:
                return hindered, None
            decision = self._decide(pod)
            return judge_nomination(decision, node, message), decision

        def by_earlier() -> Judgement | None:
            # The victims may have begun to go before the nomination could be seen.
            return judge_room(plan, node) if plan is not None else None

        theirs = {"nominated": node} | ({"message": message} if message is not None else {})
        self._compare(pending, pod, Subject.PREEMPTION, theirs, judge, by_earlier)

    def _compare(
        self,
        pending: _Pending,
        pod: Pod,
        subject: Subject,
        theirs: Mapping[str, object],
        judge: Judge,
        by_earlier: Callable[[], Judgement | None],
    ) -> None:
        """On one view of the cluster after the other, until one agrees or none is left."""
        pending.is_compared = True
        judgement, decision = judge()
        comparison = self._comparison(pod, subject, theirs, judgement, decision, pending.earlier)
        remembered = by_earlier()
        if remembered is not None and remembered.result is not Result.AGREE:
            remembered = None
        if decision is None or decision.fault is not None:
            self._report(comparison)
        elif self._is_extended(pod):
            judgement = remembered or not_comparable(EXTENDED)
            self._report(replace(comparison, judgement=judgement, moment=Moment.EARLIER))
        elif judgement.result is Result.AGREE:
            self._report(comparison)
        elif remembered is not None:
            self._report(replace(comparison, judgement=remembered, moment=Moment.EARLIER))
        elif judgement.result is Result.NOT_COMPARABLE:
            self._report(comparison)
        else:
            self._hold_open(comparison, judge, pending.turn)

    def _hold_open(self, comparison: Comparison, judge: Judge, turn: Turn) -> None:
        awaited = self._before(comparison.uid, turn)
        difference = _OpenDifference(comparison, judge, turn, self._clock.monotonic(), awaited)
        self._open_differences.append(difference)
        self._reconsider(difference)

    def _before(self, uid: str, turn: Turn) -> set[str]:
        """The waiting pods whose turn was before this one."""
        return {
            other
            for other, pending in islice(self._pending.items(), MOST_AWAITED)
            if pending.turn.may_come_before(turn) and other != uid
        }

    def _awaited_no_longer(self, uid: str) -> None:
        """It has its node now, was refused, or is gone: does that explain an open difference?"""
        for difference in list(self._open_differences):
            if uid in difference.awaited:
                difference.awaited.discard(uid)
                self._reconsider(difference, is_changed=True)

    def _reconsider(self, difference: _OpenDifference, *, is_changed: bool = False) -> None:
        """Judge as if what happened beside it had come in turn. `is_changed`: and on what has come since."""
        views = self._turns.views(difference.turn)
        for view in [contextlib.nullcontext, *views] if is_changed else views:
            with view():
                judgement, _ = difference.judge()
            if judgement.result is Result.AGREE:
                self._open_differences.remove(difference)
                self._report(replace(difference.comparison, judgement=judgement, moment=Moment.BESIDE))
                return
        if not difference.awaited:
            self._close(difference)

    def _hindered(self, pod: Pod) -> Judgement | None:
        """Why there is nothing to decide, or no way to."""
        waiting = self._queue.find(pod.uid)
        if waiting is not None and waiting.place is Place.GATED and waiting.gating is not None:
            gating = waiting.gating
            why = f"{gating.plugin} keeps the pod out of our queue: {'; '.join(gating.reasons)}"
            return Judgement(Result.DIFFER, why, Cause.GATE, gating.plugin)
        try:
            _ = pod.requests
        except BadQuantity as error:
            return not_comparable(f"its requests cannot be read: {error}")
        problem = self._hindrance(pod)
        return None if problem is None else not_comparable(problem)

    def _decide(self, pod: Pod) -> Decision:
        if self._budget is not None:
            self._budget.renew()
        profile = self._profiles[pod.spec.scheduler_name]
        return self._take_decision(profile, pod, self._state, cache=self._cache, budget=self._budget)

    # Reporting

    def _close(self, difference: _OpenDifference) -> None:
        self._open_differences.remove(difference)
        self._report(difference.comparison)

    def _drop_refusals(self, uid: str) -> None:
        """They found a node after all: their message before was about another moment."""
        for difference in list(self._open_differences):
            if difference.comparison.uid == uid and difference.comparison.subject is Subject.REFUSAL:
                self._open_differences.remove(difference)
                self._report(replace(difference.comparison, judgement=not_comparable(PLACED_SOON)))

    def _report_not_compared(
        self, pod: Pod, subject: Subject, theirs: Mapping[str, object], judgement: Judgement
    ) -> None:
        self._report(self._comparison(pod, subject, theirs, judgement, None, None))

    def _comparison(
        self,
        pod: Pod,
        subject: Subject,
        theirs: Mapping[str, object],
        judgement: Judgement,
        decision: Decision | None,
        earlier: Earlier | None,
    ) -> Comparison:
        return Comparison(
            self._clock.now(),
            pod.key,
            pod.uid,
            pod.spec.scheduler_name,
            subject,
            theirs,
            judgement,
            ours=decision.evidence() if decision is not None else {},
            earlier=earlier,
        )


def _best(decision: Decision) -> frozenset[str]:
    """The nodes as good as the chosen one."""
    columns = decision.columns()
    if decision.node is None:
        return frozenset()
    if columns is None:
        return frozenset((decision.node,))
    ties = np.flatnonzero(columns.total == columns.total.max())[:REMEMBERED_TIES].tolist()
    return frozenset(columns.nodes[place] for place in ties)


def _refusal(pod: Pod) -> str | None:
    """Their message about a pod that they cannot place."""
    condition = pod.condition("PodScheduled")
    is_refused = condition is not None and condition.status == "False" and condition.reason == "Unschedulable"
    return condition.message if condition is not None and is_refused else None


def _without_nomination(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=""))


def _has_work_before_binding(pod: Pod) -> bool:
    """Whether its binding waits for volumes or devices, which are chosen for the node that was decided on."""
    return bool(pod.volumes or pod.spec.resource_claims)
