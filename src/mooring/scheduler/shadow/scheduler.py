"""A scheduler that decides and never acts: it watches what another scheduler does with the same pods.

It is the ordinary one up to the decision. Then nothing is assumed, reserved, bound, evicted, nominated, written or
recorded; the decision is remembered, and compared when the other's becomes visible.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mooring.base.errors import BudgetExceeded, OperatorMistake, Problem
from mooring.client import ApiClient, Feed
from mooring.config import Configuration
from mooring.engine import Decision, Profile
from mooring.framework import Pod
from mooring.framework.registry import Registry
from mooring.objects.core import ObjectReference
from mooring.queue import QueuedPodInfo
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.loop import Scheduler
from mooring.scheduler.metrics import Result
from mooring.scheduler.shadow.comparison import Comparison
from mooring.scheduler.shadow.feed import ShadowFeed
from mooring.scheduler.shadow.shadow import Shadow
from mooring.scheduler.shadow.summary import Summary

SETTLE_SECONDS = 0.5


def deciding_for(configuration: Configuration, scheduler_name: str) -> Configuration:
    """The configuration to decide with for the pods of that scheduler: the profile of its name, else the first."""
    if not scheduler_name:
        raise OperatorMistake.found_in("the command line", [Problem("--scheduler-name", "needs a name")])
    named = [profile for profile in configuration.profiles if profile.scheduler_name == scheduler_name]
    chosen = (named or configuration.profiles)[0]
    return replace(configuration, profiles=(replace(chosen, scheduler_name=scheduler_name),))


class ShadowScheduler(Scheduler):
    """`run` until `stop`; tells `tell` of each comparison."""

    def __init__(
        self,
        client: ApiClient,
        configuration: Configuration,
        registry: Registry,
        *,
        tell: Callable[[Comparison], None],
        **options: Any,
    ) -> None:
        """`options` are the scheduler's own. The client may be one that only reads: nothing else is asked of it."""
        names = [profile.scheduler_name for profile in configuration.profiles]
        super().__init__(
            client, _looking_everywhere(configuration), registry, reporter=SilentReporter(client, names), **options
        )
        # Another scheduler answers `mooring explain` for these pods.
        self._control = _Unheard(client.connection.server, lambda _question: {})
        self._also_tell = tell
        self.shadow = Shadow(
            self._assembly.profiles,
            self.state,
            self.queue,
            self._clock,
            self._told,
            shares=_shares(configuration),
            hindrance=self._hindrance,
            budget=self._budget,
            is_extended=lambda pod: self._extenders is not None and self._extenders.concern(pod),
        )
        self.balance = Summary(self.metrics.plugins, names, lambda: self.shadow.waiting)

    async def run(self) -> None:
        settling = asyncio.create_task(self._settle_forever())
        try:
            await super().run()
        finally:
            settling.cancel()
            self.shadow.settle(everything=True)

    async def _settle_forever(self) -> None:
        while True:
            await self._clock.sleep(SETTLE_SECONDS)
            self.shadow.settle()
            self.balance.look()

    def _told(self, comparison: Comparison) -> None:
        self.balance.count(comparison)
        self._also_tell(comparison)

    # Where it is not the ordinary scheduler

    def _seen_first(self, pods: Feed[Pod]) -> Feed[Pod]:
        return ShadowFeed(pods, self.shadow, self.state, self._assembly.profiles)

    def _conclude(self, waiting: QueuedPodInfo, profile: Profile, decision: Decision) -> None:
        """Remember what was decided, and let the pod wait for the other scheduler."""
        self.shadow.decided(waiting.pod, decision)
        if isinstance(decision.fault, BudgetExceeded):
            self._failures.set_aside(waiting, decision.fault)
        elif decision.fault is not None:
            self._failures.broken(waiting, str(decision.fault))
        elif decision.node is None:
            unschedulable, pending = decision.rejectors
            self._failures.refused(waiting, decision.message, unschedulable=unschedulable, pending=pending)
        else:
            self.metrics.attempted(Result.SCHEDULED, profile.name, waiting.popped)
            self.queue.done(waiting.pod.uid)

    def _hindrance(self, pod: Pod) -> str | None:
        kinds = self._assembly.kinds[pod.spec.scheduler_name]
        missing = self._informers.missing(kinds)
        if not missing:
            return None
        plugins = sorted({plugin for kind, _ in missing for plugin in kinds[kind]})
        return f"we wait for what {', '.join(plugins)} reads: {'; '.join(problem for _, problem in missing)}"


class SilentReporter(Reporter):
    """Has nothing to tell anybody: what happens to the pods is the other scheduler's to say."""

    def __init__(self, client: ApiClient, profiles: list[str]) -> None:
        super().__init__(client, client.clock, profiles)

    def scheduled(self, pod: Pod, node: str) -> None: ...

    def failed(self, pod: Pod, message: str) -> None: ...

    def record(self, pod: Pod, *, reason: str, action: str, note: str) -> None: ...

    def preempted(self, victim: ObjectReference, preemptor: Pod, node: str, *, in_memory: bool = False) -> None: ...

    def condition(self, pod: Pod, reason: str, message: str, nominate: str | None) -> None: ...


class _Unheard(ExplainSocket):
    async def open(self) -> None: ...


def _looking_everywhere(configuration: Configuration) -> Configuration:
    """Every node is judged: theirs may be one that we would not have sampled."""
    profiles = tuple(replace(profile, percentage_of_nodes_to_score=None) for profile in configuration.profiles)
    return replace(configuration, percentage_of_nodes_to_score=None, profiles=profiles)


def _shares(configuration: Configuration) -> Mapping[str, int]:
    """How much they look at, if they have the same configuration: where it says nothing, kube-scheduler adapts."""
    shares = {}
    for profile in configuration.profiles:
        share = profile.percentage_of_nodes_to_score
        share = configuration.percentage_of_nodes_to_score if share is None else share
        shares[profile.scheduler_name] = share or 0
    return shares
