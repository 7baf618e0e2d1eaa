"""Preemption: what a PostFilter plugin planned, carried out beside the loop.

Pods of lower priority lose their nomination to the node. Then the victims are evicted, all but the last concurrently;
the last when the others could be evicted, because freeing only part of what the preemptor needs helps no pod. Until
then the preemptor is gated by PreEnqueue: it would plan the same again. The deletion of the victims requeues it; after
a failure it is activated.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.framework import Plan, Pod, PodGroupPlan
from mooring.framework.verdicts import ClaimRelease
from mooring.objects.core import ObjectReference
from mooring.objects.placed import PlacedPod
from mooring.objects.pod_groups import PodGroup
from mooring.queue import Place, SchedulingQueue
from mooring.scheduler.cycle.background_tasks import BackgroundTasks
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.pod_patches import is_gone, patch_status
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.claim_writer import ApiClaimWriter
from mooring.scheduler.watching.feeds import PodFeed
from mooring.state import State

AFTER_FAILURE_SECONDS, AFTER_DELETION_SECONDS = 10.0, 1.0
MOST_PREEMPTIONS, MOST_EVICTIONS = 16, 32
"""Carried out at once; the others wait for their turn. A client has few requests in flight for all: with thousands of
evictions, bindings would wait for them, and the first preemptor for most of the victims of all others."""

WHOLE_CLUSTER = "cluster"
"""Where room is made for a pod group."""

_log = Log("scheduler")


class PreemptionsInProgress:
    """The `Preemptions` service: the preemptors whose victims are being evicted, and these victims.

    The response to an eviction and the watch event about it come in any order. So a victim counts as being evicted
    from the plan until the watch shows it, or until its eviction has failed.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._last_victims: dict[str, str | None] = {}
        """The preemptor's uid → that of its last victim, once that one is being evicted."""
        self._latest: dict[str, int] = {}
        """The preemptor's uid → its latest preemption. An earlier one may still wait for its last response."""
        self._planned: dict[int, dict[str, None]] = {}
        """By preemption, the uids of its victims whose eviction has not succeeded yet."""
        self._numbers = itertools.count()
        self._evicted: dict[str, float | None] = {}
        """The uids of victims whose eviction has succeeded, until the state shows it → for one that is requeued instead
        of deleted, when it was assumed: it may be assumed again."""

    def is_under_way(self, uid: str) -> bool:
        if uid not in self._last_victims:
            return False
        last = self._last_victims[uid]
        if last is None:
            return True
        # The watch may show the last victim's deletion before our request returns. If the preemptor were gated then,
        # nothing would requeue it any more.
        victim = self._state.pod(last)
        return victim is not None and not victim.is_terminating

    def is_victim(self, uid: str) -> bool:
        """Whether the eviction of this pod is under way and has not succeeded yet."""
        return any(uid in victims for victims in self._planned.values())

    def being_evicted(self) -> Sequence[PlacedPod]:
        if not self._planned and not self._evicted:
            return ()
        self._forget_observed()
        uids = dict.fromkeys(itertools.chain(self._evicted, *self._planned.values()))
        found = map(self._state.pod, uids)
        return [victim for victim in found if victim is not None and not victim.is_terminating]

    def _forget_observed(self) -> None:
        for uid, assumed_at in list(self._evicted.items()):
            victim = self._state.pod(uid)
            if victim is None or victim.is_terminating or (assumed_at is not None and victim.assumed_at != assumed_at):
                del self._evicted[uid]

    def begin(self, uid: str, victims: Iterable[PlacedPod]) -> int:
        """Returns the number of this preemption."""
        self._last_victims[uid] = None
        self._latest[uid] = number = next(self._numbers)
        self._planned[number] = dict.fromkeys(victim.uid for victim in victims)
        return number

    def begin_last(self, uid: str, number: int, victim: str) -> None:
        if self._latest.get(uid) == number:
            self._last_victims[uid] = victim

    def evicted(self, number: int, victim: str, *, is_requeued: bool = False) -> None:
        """The API server has deleted this victim; or its binding is cancelled, and it is requeued."""
        self._planned[number].pop(victim, None)
        there = self._state.pod(victim)
        if there is not None:
            self._evicted[victim] = there.assumed_at if is_requeued else None

    def end(self, uid: str, number: int) -> None:
        """Victims that are not evicted by now stay."""
        if self._latest.get(uid) == number:
            del self._latest[uid], self._last_victims[uid]
        del self._planned[number]
        self._forget_observed()


class PreemptorRef(msgspec.Struct, frozen=True):
    """A pod or a pod group that room is made for."""

    uid: str
    key: str
    kind: str
    """`pod` or `podgroup`, in messages."""
    priority: int
    scheduler_name: str
    pods: Sequence[Pod]
    """What waits until the evictions are under way."""
    place: str
    """Where room is made: a node, or `cluster`."""
    message: str
    """What conditions and events of the victims report instead of the preemptor; "": that they are preempted for it."""

    @classmethod
    def of_pod(cls, pod: Pod, node: str, message: str) -> PreemptorRef:
        return cls(pod.uid, pod.key, "pod", pod.priority, pod.spec.scheduler_name, (pod,), node, message)

    @classmethod
    def of_group(cls, group: PodGroup, pods: Sequence[Pod], message: str) -> PreemptorRef:
        name = pods[0].spec.scheduler_name
        return cls(group.uid, group.key, "podgroup", group.priority, name, pods, WHOLE_CLUSTER, message)

    @property
    def condition_message(self) -> str:
        why = self.message or f"preempting to accommodate a higher priority {self.kind}"
        return f"{self.scheduler_name}: {why}"

    def event_note(self, victim: PlacedPod, *, in_memory: bool) -> str:
        """`in_memory`: the victim was assumed and only forgotten."""
        node = self.place if self.place == WHOLE_CLUSTER else victim.node
        where = " (in kube-scheduler memory)." if in_memory else ""
        return self.message or f"Preempted by {self.kind} {self.uid} on node {node}{where}"


class Preemption:
    """Evicts the victims of plans."""

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        in_progress: PreemptionsInProgress,
        queue: SchedulingQueue,
        pods: PodFeed,
        state: State,
        room: PermitRoom,
        bindings: BindingCycles,
        reporter: Reporter,
        metrics: SchedulerMetrics,
    ) -> None:
        self._client = client
        self._clock = clock
        self._in_progress = in_progress
        self._queue = queue
        self._pods = pods
        self._state = state
        self._room = room
        self._bindings = bindings
        self._reporter = reporter
        self._metrics = metrics
        self._tasks = BackgroundTasks()
        self._turns = asyncio.Semaphore(MOST_PREEMPTIONS)
        self._evictions = asyncio.Semaphore(MOST_EVICTIONS)

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, plan: Plan, pod: Pod) -> None:
        """Evict the plan's victims. From now on the pod is gated."""
        if plan.evict:
            self._start(
                plan.evict, PreemptorRef.of_pod(pod, plan.nominate or plan.evict[0].node, plan.eviction_message)
            )

    def start_for_group(self, plan: PodGroupPlan, group: PodGroup, pods: Sequence[Pod]) -> None:
        """Evict the plan's victims. From now on the pods of the group are gated."""
        self._start(plan.evict, PreemptorRef.of_group(group, pods, plan.eviction_message))

    def _start(self, evict: Sequence[PlacedPod], preemptor: PreemptorRef) -> None:
        victims = [victim for victim in evict if not victim.is_terminating]
        if preemptor.message:  # it waits for no room: what is evicted already need not be evicted for it
            victims = [victim for victim in victims if not self._in_progress.is_victim(victim.uid)]
        if not victims:
            return  # all of them are terminating already
        self._metrics.chose_victims(len(evict))
        number = self._in_progress.begin(preemptor.uid, victims)
        self._tasks.start(self._preempt(victims, preemptor, number), f"make room for {preemptor.key}")

    async def finish(self, seconds: float) -> None:
        """At shutdown: let evictions that have begun end."""
        await self._tasks.finish(seconds)

    async def _preempt(self, victims: Sequence[PlacedPod], preemptor: PreemptorRef, number: int) -> None:
        node, key = preemptor.place, preemptor.key
        _log.v(2).info("Start the preemption asynchronously", preemptor=key, node=node, numVictimsToDelete=len(victims))
        is_done, began = False, self._clock.monotonic()
        try:
            async with self._turns:
                is_cleared = await self._clear_lower_nominations(node, preemptor)
                is_done = await self._evict_all(victims, preemptor, number) and is_cleared
        finally:
            self._in_progress.end(preemptor.uid, number)
            self._metrics.preempted(succeeded=is_done, seconds=self._clock.monotonic() - began)
            result = "success" if is_done else "error"
            _log.v(2).info("Async Preemption finished completely", preemptor=key, node=node, result=result)
            for pod in preemptor.pods:
                if not is_done or self._missed_the_deletions(victims, pod):
                    # The deletions may never happen, or have happened while the preemptor was gated.
                    self._queue.activate([pod])
                else:
                    self._queue.recheck_pre_enqueue(pod)

    def _missed_the_deletions(self, victims: Sequence[PlacedPod], pod: Pod) -> bool:
        """Whether the pod is still gated although no victim is left whose deletion could requeue it."""
        return self._queue.where(pod) == Place.GATED.value and not any(
            (there := self._state.pod(victim.uid)) is not None and there.node == victim.node for victim in victims
        )

    async def _evict_all(self, victims: Sequence[PlacedPod], preemptor: PreemptorRef, number: int) -> bool:
        *others, last = victims
        if not all(await asyncio.gather(*(self._evict(victim, preemptor, number) for victim in others))):
            return False
        self._in_progress.begin_last(preemptor.uid, number, last.uid)
        return await self._evict(last, preemptor, number)

    async def _clear_lower_nominations(self, node: str, preemptor: PreemptorRef) -> bool:
        """Clear the nominations of lower-priority pods to this node, so that they are rescheduled sooner. Failures are
        ignored."""
        lower = [each.uid for each in self._state.nominations.at(node) if each.priority < preemptor.priority]
        is_cleared = True
        for uid in lower:
            # Each is looked up just before its patch: meanwhile it may have been assigned or deleted.
            pod = self._pods.latest(uid)
            if pod is not None and pod.status.nominated_node_name:
                is_cleared &= await self._reporter.clear_nomination(pod)
        return is_cleared

    async def _evict(self, victim: PlacedPod, preemptor: PreemptorRef, number: int) -> bool:
        """Evict the pod with this uid; True also if it is deleted already."""
        about = ObjectReference(
            kind="Pod",
            api_version="v1",
            namespace=victim.namespace,
            name=victim.name,
            uid=victim.uid,
            resource_version=victim.resource_version,
        )
        # A pod that is waiting on permit or being bound need not be deleted: it is requeued.
        if self._room.preempt(victim.uid) or self._bindings.preempt(victim.uid):
            _log.v(2).info("Preemptor preempted a waiting pod", preemptor=preemptor.key, waitingPod=victim.key)
            self._in_progress.evicted(number, victim.uid, is_requeued=True)
            self._preempted(about, preemptor, victim, in_memory=True)
            return True
        try:
            async with self._evictions:
                await self._mark(victim, preemptor)
                await self._client.delete(Pod.KIND, victim.name, victim.namespace, uid=victim.uid)
        except Exception as error:  # in any case the preemptor must not wait for what does not happen
            if is_gone(error):
                _log.v(2).info("Victim Pod is already deleted", preemptor=preemptor.key, victim=victim.key)
                self._in_progress.evicted(number, victim.uid)
                return True
            _log.error("Failed to evict pod", pod=victim.key, preemptor=preemptor.key, err=error)
            return False
        _log.v(2).info(
            "Preemptor Pod preempted victim Pod", preemptor=preemptor.key, victim=victim.key, node=preemptor.place
        )
        self._in_progress.evicted(number, victim.uid)
        self._preempted(about, preemptor, victim)
        return True

    def _preempted(
        self, about: ObjectReference, preemptor: PreemptorRef, victim: PlacedPod, *, in_memory: bool = False
    ) -> None:
        note = preemptor.event_note(victim, in_memory=in_memory)
        self._reporter.preempted(about, note, scheduler_name=preemptor.scheduler_name)

    async def _mark(self, victim: PlacedPod, preemptor: PreemptorRef) -> None:
        """Set the DisruptionTarget condition, which controllers and budgets read."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": preemptor.condition_message,
            "observedGeneration": victim.generation,
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        await patch_status(self._client, self._clock, victim.namespace, victim.name, body)


class ClaimReleases:
    """Deallocates claims that stand in a pod's way, as a PostFilter plugin proposed, beside the loop.

    The change of its claim requeues the pod; a claim that was deleted cannot.
    """

    def __init__(self, writer: ApiClaimWriter, queue: SchedulingQueue) -> None:
        self._writer = writer
        self._queue = queue
        self._tasks = BackgroundTasks()

    def start(self, releases: Sequence[ClaimRelease], pod: Pod) -> None:
        self._tasks.start(self._release_all(releases, pod), f"release claims for {pod.key}")

    async def finish(self, seconds: float) -> None:
        """At shutdown: let what has begun end."""
        await self._tasks.finish(seconds)

    async def _release_all(self, releases: Sequence[ClaimRelease], pod: Pod) -> None:
        for release in releases:
            claim = f"{release.namespace}/{release.name}"
            what = f"{_kind_of(release)} of ResourceClaim"
            try:
                await self._writer.release(release)
                _log.v(5).info(what, pod=pod, resourceclaim=claim)
                if release.delete:
                    self._queue.retry_after(pod, AFTER_DELETION_SECONDS)
            except Exception as error:  # in any case the pod must not wait for what does not happen
                _log.error(f"{what} failed", pod=pod, resourceclaim=claim, err=error)
                self._queue.retry_after(pod, AFTER_FAILURE_SECONDS)


def _kind_of(release: ClaimRelease) -> str:
    if release.unreserve:
        return "Unreserving"
    return "Deletion" if release.delete else "Deallocation"
