"""Which version of the configuration decides, and how the next one takes over.

    build what is new ──▶ watch its kinds ──▶ start it ──▶ switch ──▶ retire what is left of the old
        any failure up to here: undone, and the old version is kept unchanged

The switch waits for nothing and comes between two decisions, so every decision is made by one version. What happens to
a pod then depends on where it is:

- in the queue: it stays, its PreEnqueue plugins run again, and if it had been rejected it is retried, after its
backoff;
- waiting on permit for a plugin that its profile no longer runs: rejected in its name, and requeued;
- waiting on permit for others, or being bound: it ends with the version that decided it, whose plugins live until then;
- of a removed profile: ignored, once it is neither in flight nor being bound;
- of an added profile: enqueued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from mooring.base.errors import Fault, OperatorMistake
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.config import Configuration
from mooring.framework import Point
from mooring.framework.registry import Registry
from mooring.objects.meta import KubeObject
from mooring.queue import SchedulingQueue
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.cycle.permit import PermitRoom
from mooring.scheduler.cycle.reporting import Reporter
from mooring.scheduler.introspection.recorded_changes import RecordingPodFeed, record_configuration
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.plugin_runtime.assembly import Assembly, CurrentAssembly, Instance, PluginServices, assemble
from mooring.scheduler.plugin_runtime.lifecycle import Lifecycle
from mooring.scheduler.reload.restart_required import needs_restart
from mooring.scheduler.watching.feeds import PodFeed

PREPARATION_SECONDS = 30.0
"""How long the first list of a kind, and the start of a plugin, may take."""
STOP_SECONDS = 5.0

RELOADED = "the configuration was reloaded while the pod waited for plugin {}, which is no longer the same"

_log = Log("reload")


class NotNow(Fault):
    """The cluster's state prevents the new version; the same files may be adopted later."""


class Adopted(msgspec.Struct, frozen=True):
    """What a new version brought."""

    number: int
    built: Sequence[str] = ()
    """Plugins of which an instance was built."""
    retired: Sequence[str] = ()
    """Plugins of which an instance ends."""
    added: Sequence[str] = ()
    """Profiles."""
    removed: Sequence[str] = ()

    @property
    def is_news(self) -> bool:
        return self.number > 0


UNCHANGED = Adopted(0)


class Switched(msgspec.Struct):
    """The parts of a running scheduler that a switch updates."""

    queue: SchedulingQueue
    pods: PodFeed
    room: PermitRoom
    bindings: BindingCycles
    reporter: Reporter
    metrics: SchedulerMetrics


class Versions:
    """The version in force. Only one takes over at a time."""

    def __init__(
        self,
        configuration: Configuration,
        registry: Registry,
        assembly: CurrentAssembly,
        services: PluginServices,
        lifecycle: Lifecycle,
        switched: Switched,
        between_cycles: Callable[[], Awaitable[None]],
    ) -> None:
        """`between_cycles` returns while no pod is being decided; what follows without an await precedes the next."""
        self.configuration = configuration
        self.number = 1
        self.registry = registry
        self._assembly = assembly
        self._services = services
        self._informers = services.informers
        self._lifecycle = lifecycle
        self._switched = switched
        self._between_cycles = between_cycles
        self._taking_over = asyncio.Lock()
        self._retiring: dict[asyncio.Task[None], list[Instance]] = {}

    async def adopt(self, configuration: Configuration, registry: Registry) -> Adopted:
        """Let this one decide from the next cycle on.

        Raises `OperatorMistake` or `Fault`; the version in force is then kept unchanged.
        """
        async with self._taking_over:
            if self._is_in_force(configuration, registry):
                return UNCHANGED
            if problems := needs_restart((self.configuration, self.registry), (configuration, registry)):
                raise OperatorMistake("the new configuration changes what only a restart can change.", problems)
            try:
                assembly = await self._prepared(configuration, registry)
            except BaseException:
                self._forget_kinds()
                raise
            await self._between_cycles()
            return self._switch(configuration, registry, assembly)

    async def close(self, seconds: float) -> None:
        """At shutdown: plugins that are retiring are ended with all others. Waits for them so long."""
        for task in list(self._retiring):
            task.cancel()
        if self._retiring:
            await asyncio.wait(list(self._retiring), timeout=seconds)

    def _is_in_force(self, configuration: Configuration, registry: Registry) -> bool:
        def classes(known: Registry) -> list[type | None]:
            found = [known.get(name) for profile in configuration.profiles for name in profile.used_plugins]
            return [entry.cls if entry is not None else None for entry in found]

        return configuration == self.configuration and classes(registry) == classes(self.registry)

    # Before the switch: all that can fail, and all that takes time

    async def _prepared(self, configuration: Configuration, registry: Registry) -> Assembly:
        try:
            assembly = assemble(configuration, registry, self._services, self._assembly.current.instances)
        except BaseException as error:  # a constructor is plugin code: it may raise anything
            if isinstance(error, OperatorMistake | Fault) or not is_its_own(error):
                raise
            raise Fault(f"a plugin cannot be built: {described(error)}") from error
        new = [each for each in assembly.instances.values() if each not in self._assembly.current.instances.values()]
        await self._watch(assembly)
        await self._start(new)
        return assembly

    async def _watch(self, assembly: Assembly) -> None:
        """Decisions of the new version need their kinds from the first one on."""
        self._informers.follow()
        await self._informers.settled(PREPARATION_SECONDS)
        for profile, kinds in assembly.kinds.items():
            # What was missing before may stay missing.
            already = self._assembly.current.kinds.get(profile, {})
            missing = self._informers.missing(kind for kind in kinds if kind not in already)
            for kind, problem in missing:
                plugins = ", ".join(sorted(kinds[kind]))
                raise NotNow(f"profile {profile} would have to wait for what its plugin {plugins} reads: {problem}")

    async def _start(self, instances: Sequence[Instance]) -> None:
        begun: list[Instance] = []
        try:
            for instance in instances:
                begun.append(instance)
                await self._lifecycle.begin(instance, PREPARATION_SECONDS)
        except BaseException as error:
            for instance in begun:
                await self._lifecycle.end(instance, STOP_SECONDS)
            if isinstance(error, Fault):
                raise NotNow(f"plugin {begun[-1].plugin.name} cannot be started: {error}") from error
            raise

    # The switch: nothing waits, nothing fails

    def _switch(self, configuration: Configuration, registry: Registry, assembly: Assembly) -> Adopted:
        old = self._assembly.replace(assembly)
        built = [each for key, each in assembly.instances.items() if old.instances.get(key) is not each]
        gone = [each for key, each in old.instances.items() if assembly.instances.get(key) is not each]
        self.configuration, self.registry = configuration, registry
        self.number += 1
        parts = self._switched
        parts.reporter.adopt(assembly.profiles)
        parts.metrics.attempts.forget(list(old.profiles.values()))
        parts.pods.retain_profiles(assembly.profiles)
        parts.queue.set_profiles(
            assembly.rules,
            initial_backoff_seconds=configuration.pod_initial_backoff_seconds,
            max_backoff_seconds=configuration.pod_max_backoff_seconds,
        )
        if isinstance(parts.pods, RecordingPodFeed):
            record_configuration(parts.pods.recorder, configuration, assembly)
        parts.pods.adopt_foreign_pods()
        # After the queue has recorded the switch: a pod that is rejected now is then retried without another event.
        self._reject_pods_of_removed_permit_plugins()
        self._retire(gone)
        return Adopted(
            self.number,
            built=_names(built),
            retired=_names(gone),
            added=sorted(assembly.profiles.keys() - old.profiles.keys()),
            removed=sorted(old.profiles.keys() - assembly.profiles.keys()),
        )

    def _reject_pods_of_removed_permit_plugins(self) -> None:
        """A pod that waits for a plugin which its profile no longer runs would wait until its timeout."""
        for waiting in self._switched.room:
            then = self._switched.bindings.profile_of(waiting.pod.uid)
            now = self._assembly.current.profiles.get(waiting.pod.spec.scheduler_name)
            still_run = {id(plugin) for plugin in now.at(Point.PERMIT)} if now is not None else set()
            permitting = then.at(Point.PERMIT) if then is not None else ()
            gone = {each.name for each in permitting if id(each) not in still_run}
            for plugin in sorted(waiting.waiting_for & gone):
                self._switched.room.reject(waiting.pod.uid, plugin, RELOADED.format(plugin))

    # After the switch

    def _retire(self, gone: list[Instance]) -> None:
        if not gone:
            self._forget_kinds()
            return
        task = asyncio.get_running_loop().create_task(self._end(gone), name="retire plugins")
        self._retiring[task] = gone

        def retired(done: asyncio.Task[None]) -> None:
            del self._retiring[done]
            if not done.cancelled():
                self._forget_kinds()

        task.add_done_callback(retired)

    async def _end(self, gone: list[Instance]) -> None:
        """What they decided, they bind; then they are stopped."""
        await self._switched.bindings.wait_for_current()
        for instance in gone:
            await self._lifecycle.end(instance, STOP_SECONDS)

    def _forget_kinds(self) -> None:
        """Stop watching what no living instance reads."""
        living = [
            *self._assembly.current.instances.values(),
            *(each for gone in self._retiring.values() for each in gone),
        ]
        read: set[type[KubeObject]] = {kind for instance in living for kind in instance.kinds}
        # Those that the scheduler itself reads for a profile.
        read.update(kind for kinds in self._assembly.current.kinds.values() for kind in kinds)
        self._informers.keep_only(read)


def _names(instances: Sequence[Instance]) -> list[str]:
    return sorted({instance.plugin.name for instance in instances})
