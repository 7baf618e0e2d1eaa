"""Builds a shadow: a scheduler beside another one, whose executor only records decisions.

Everything up to the decision is the ordinary scheduler. Each decision is compared when the other scheduler's becomes
visible.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from mooring.base.errors import OperatorMistake, Problem
from mooring.client import ApiClient
from mooring.config import Configuration
from mooring.framework import Pod
from mooring.framework.registry import Registry
from mooring.objects.core import ObjectReference
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.loop import Scheduler
from mooring.scheduler.shadow.comparison import Comparison
from mooring.scheduler.shadow.executor import ShadowExecutor
from mooring.scheduler.shadow.observers import AfterUpdate, BeforeUpdate
from mooring.scheduler.shadow.shadow import Shadow
from mooring.scheduler.shadow.summary import Summary
from mooring.scheduler.shutdown import SHUTDOWN_SECONDS
from mooring.scheduler.wiring import Core, at_once, build_core, complete

SETTLE_SECONDS = 0.5


class ShadowRun(NamedTuple):
    """A scheduler that only shadows, and its results."""

    scheduler: Scheduler
    shadow: Shadow
    summary: Summary


def build_shadow(
    client: ApiClient,
    configuration: Configuration,
    registry: Registry,
    *,
    report: Callable[[Comparison], None],
    shutdown_seconds: float = SHUTDOWN_SECONDS,
    may_schedule: Callable[[], Awaitable[None]] = at_once,
    **options: Any,
) -> ShadowRun:
    """`report` is called with each comparison; `options` are those of `build_core`. The client may be read-only."""
    names = [profile.scheduler_name for profile in configuration.profiles]
    core = build_core(
        client, _scoring_all_nodes(configuration), registry, reporter=SilentReporter(client, names), **options
    )

    def counted(comparison: Comparison) -> None:
        summary.count(comparison)
        report(comparison)

    shadow = Shadow(
        core.assembly.current.profiles,
        core.state,
        core.queue,
        core.clock,
        counted,
        shares=_shares(configuration),
        hindrance=lambda pod: _unlisted_kinds(core, pod),
        budget=core.budget,
        decide=core.decide,
        is_extended=lambda pod: core.extenders is not None and core.extenders.concern(pod),
    )
    summary = Summary(core.metrics.plugins, names, lambda: shadow.waiting)

    async def settle_forever() -> None:
        try:
            while True:
                await core.clock.sleep(SETTLE_SECONDS)
                shadow.settle()
                summary.look()
        finally:
            shadow.settle(everything=True)

    scheduler = complete(
        core,
        ShadowExecutor(shadow, core.queue, core.failures, core.metrics),
        before=[BeforeUpdate(shadow, core.state, names)],
        after=[AfterUpdate(shadow)],
        companions=[settle_forever],
        is_explained=False,  # the other scheduler explains these pods
        schedules_groups=False,  # each pod is compared by itself
        shutdown_seconds=shutdown_seconds,
        may_schedule=may_schedule,
    )
    return ShadowRun(scheduler, shadow, summary)


def deciding_for(configuration: Configuration, scheduler_name: str) -> Configuration:
    """The configuration to decide with for the pods of that scheduler: the profile of its name, else the first."""
    if not scheduler_name:
        raise OperatorMistake.found_in("the command line", [Problem("--scheduler-name", "needs a name")])
    named = [profile for profile in configuration.profiles if profile.scheduler_name == scheduler_name]
    chosen = (named or configuration.profiles)[0]
    return replace(configuration, profiles=(replace(chosen, scheduler_name=scheduler_name),))


class SilentReporter(Reporter):
    """Writes nothing: events and conditions of these pods are the other scheduler's."""

    def __init__(self, client: ApiClient, profiles: list[str]) -> None:
        super().__init__(client, client.clock, profiles)

    def scheduled(self, pod: Pod, node: str) -> None: ...

    def failed(self, pod: Pod, message: str) -> None: ...

    def record(self, pod: Pod, *, reason: str, action: str, note: str) -> None: ...

    def problem(self, regarding: ObjectReference, plugin: str, *, reason: str, note: str, is_warning: bool) -> None: ...

    def preempted(self, victim: ObjectReference, note: str, *, scheduler_name: str) -> None: ...

    def condition(self, pod: Pod, reason: str, message: str, nominate: str | None) -> None: ...


def _unlisted_kinds(core: Core, pod: Pod) -> str | None:
    """Why the pod cannot be decided about now, if so."""
    kinds = core.assembly.current.kinds[pod.spec.scheduler_name]
    missing = core.informers.missing(kinds)
    if not missing:
        return None
    plugins = sorted({plugin for kind, _ in missing for plugin in kinds[kind]})
    return f"we wait for what {', '.join(plugins)} reads: {'; '.join(problem for _, problem in missing)}"


def _scoring_all_nodes(configuration: Configuration) -> Configuration:
    """Every node is evaluated: the other scheduler's may be one that sampling would have left out."""
    profiles = tuple(replace(profile, percentage_of_nodes_to_score=None) for profile in configuration.profiles)
    return replace(configuration, percentage_of_nodes_to_score=None, profiles=profiles)


def _shares(configuration: Configuration) -> Mapping[str, int]:
    """How many nodes the other scheduler samples, if it has the same configuration; 0: it adapts."""
    shares = {}
    for profile in configuration.profiles:
        share = profile.percentage_of_nodes_to_score
        share = configuration.percentage_of_nodes_to_score if share is None else share
        shares[profile.scheduler_name] = share or 0
    return shares
