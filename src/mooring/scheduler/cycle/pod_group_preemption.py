"""Preemption for a pod group as a whole: a plugin looks for the victims, in trials on the state that are undone.

Which pods may be victims, and which of them are reprieved, is the plugin's business (DefaultPreemption). The evictions
are carried out as those for a single pod.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from mooring.base.errors import PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.engine import Profile
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import fault
from mooring.framework import PlacedPod, PodGroupInfo, PodGroupPlan, PodGroups, Refusal
from mooring.framework.verdicts import Code
from mooring.scheduler.cycle.pod_group_results import SUCCESS, GroupStatus
from mooring.scheduler.cycle.preemption import Preemption
from mooring.scheduler.watching.feeds import PodFeed
from mooring.state import State

NO_PLUGIN = "default preemption plugin is not registered, workload aware preemption is disabled"
CONSTRAINED = "workload aware preemption is not supported for pod groups with scheduling constraints"

_log = Log("scheduler")

Feasibility = Callable[[], Awaitable[Refusal | None]]
"""Tries the group as things are; None: it fits."""


class Trial:
    """The framework's `PodGroupTrial`."""

    __slots__ = ("_evicted", "_feasibility", "_listed", "_pods", "_state")

    def __init__(self, state: State, pods: PodFeed, refusal: Feasibility) -> None:
        self._state = state
        self._pods = pods
        self._evicted: dict[str, PlacedPod] = {}
        self._feasibility = refusal
        self._listed = tuple(pod for node in state.nodes for pod in node.pods)

    @property
    def pods(self) -> Sequence[PlacedPod]:
        return self._listed

    async def refusal(self) -> Refusal | None:
        return await self._feasibility()

    def evict(self, pods: Sequence[PlacedPod]) -> None:
        for pod in pods:
            self._evicted[pod.uid] = pod
            self._state.evict_in_trial(pod)

    def reprieve(self, pods: Sequence[PlacedPod]) -> None:
        for pod in pods:
            self._restore(self._evicted.pop(pod.uid))

    def undo(self) -> None:
        while self._evicted:
            self._restore(self._evicted.popitem()[1])

    def _restore(self, pod: PlacedPod) -> None:
        if self._state.pod(pod.uid) is not None:  # extenders were awaited, and the watch has shown the pod again
            return
        self._state.restore_in_trial(pod)
        if pod.assumed_at is None and self._pods.uid_of(pod.key) != pod.uid:  # it was deleted meanwhile
            self._state.remove_pod(pod.uid)


class PodGroupPreemption:
    """Looks for pods to evict for a pod group."""

    def __init__(self, state: State, pods: PodFeed, groups: PodGroups, preemption: Preemption) -> None:
        self._state = state
        self._pods = pods
        self._groups = groups
        self._preemption = preemption

    async def run(self, group: PodGroupInfo, profile: Profile, refusal: Feasibility) -> GroupStatus:
        """Success: evictions have begun. Otherwise why there are none."""
        plugin = next((each for each in profile.post_filters if hasattr(each, "pod_group_post_filter")), None)
        if plugin is None:
            return GroupStatus(Code.UNSCHEDULABLE, "", (NO_PLUGIN,))
        found = self._groups.get(group.namespace, group.name)
        if found is None:
            missing = f'podgroup.scheduling.k8s.io "{group.name}" not found'
            return GroupStatus.failed(f"failed to get pod group object: {missing}")
        if found.topology_key is not None:
            return GroupStatus(Code.UNSCHEDULABLE, "", (CONSTRAINED,))
        trial = Trial(self._state, self._pods, refusal)
        try:
            plan = await plugin.pod_group_post_filter(found, group.pods, trial)
        except PluginFault as problem:
            return GroupStatus.failed(str(problem))
        except BaseException as error:
            if not is_its_own(error):
                raise
            return GroupStatus.failed(str(fault(plugin, ExtensionPoint.POST_FILTER, described(error))))
        finally:
            trial.undo()
        if isinstance(plan, Refusal):
            return GroupStatus.refused(plan)
        if not isinstance(plan, PodGroupPlan):
            what = f"pod_group_post_filter returned {plan!r}; it must return a PodGroupPlan or a Refusal"
            return GroupStatus.failed(str(fault(plugin, ExtensionPoint.POST_FILTER, what)))
        self._preemption.start_for_group(plan, found, group.pods)
        return SUCCESS

    def unschedulable(self, group: PodGroupInfo, profile: Profile) -> None:
        """The group does not fit: carry out what plugins plan then."""
        found = self._groups.get(group.namespace, group.name)
        for plugin in profile.plugins:
            if found is None or not hasattr(plugin, "pod_group_unschedulable"):
                continue
            try:
                plan = plugin.pod_group_unschedulable(found)
            except BaseException as error:
                if not is_its_own(error):
                    raise
                _log.error("Plugin failed", podGroup=group.key, plugin=plugin.name, err=described(error))
                continue
            if isinstance(plan, PodGroupPlan):
                pods = [pod.key for pod in plan.evict]
                _log.info("Evicting pods", podGroup=group.key, plugin=plugin.name, pods=pods, why=plan.eviction_message)
                self._preemption.start_for_group(plan, found, group.pods)
            elif plan is not None:
                what = f"pod_group_unschedulable returned {plan!r}; it must return a PodGroupPlan or None"
                _log.error("Plugin failed", podGroup=group.key, plugin=plugin.name, err=what)
