"""PostFilter: plugins that try to make room for a pod that fits no node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from mooring.base.errors import PluginFault, StateMissing
from mooring.engine.cycle import EngineCycle, PluginCycle, Stage
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, check_reasons, fault
from mooring.engine.rejected import Rejected
from mooring.engine.what_if import EngineWhatIf
from mooring.framework import UNRESOLVABLE, NodeRows, Plan, PostFilterRefusal, Refusal

CLEAR = ""
"""Clear an earlier nomination."""

NO_STATE = "not found"


class PostFilterResult(NamedTuple):
    """What one PostFilter plugin returned or raised."""

    plugin: str
    result: Plan | Refusal | PluginFault


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What PostFilter plugins returned: a plan, or a message that follows the failure message."""

    plan: Plan | None = None
    message: str = ""
    nominate: str | None = None
    """The node that the pod is nominated to from now on; "" for none, None for no change."""
    remedies: tuple[PostFilterRefusal, ...] = ()
    """What plugins without a plan request nevertheless."""
    results: tuple[PostFilterResult, ...] = ()
    """Per plugin that ran, in order."""
    is_preemption_attempted: bool = False
    """Whether a plugin ran that preempts pods."""


def run_post_filters(cycle: EngineCycle, rejected: Rejected) -> PostFiltered:
    """Run them in order until one returns a plan. Unresolvable or a fault ends it, and its message alone remains."""
    if not cycle.profile.post_filters:
        return PostFiltered(nominate=CLEAR)
    results: list[PostFilterResult] = []
    reasons: list[str] = []
    remedies: list[PostFilterRefusal] = []
    is_preemption_attempted = False
    for plugin in cycle.profile.post_filters:
        cycle.stage = Stage.POST_FILTER
        is_preemption_attempted |= plugin.preempts
        try:
            with calling(cycle, plugin, ExtensionPoint.POST_FILTER):
                result = plugin.post_filter(cycle.pod, NodeDiagnosis(rejected, cycle), EngineWhatIf(cycle))
            if not isinstance(result, Plan | Refusal):
                what = f"post_filter returned {result!r}; it must return a Plan or a Refusal"
                raise fault(plugin, ExtensionPoint.POST_FILTER, what)
            if isinstance(result, Refusal):
                check_reasons(plugin, ExtensionPoint.POST_FILTER, result)
        except PluginFault as problem:
            # kube-scheduler's message where the plugin's PreFilter never ran; a real fault names its plugin.
            message = NO_STATE if isinstance(problem.__cause__, StateMissing) else str(problem)
            results.append(PostFilterResult(plugin.name, problem))
            return PostFiltered(
                message=message, results=tuple(results), is_preemption_attempted=is_preemption_attempted
            )
        results.append(PostFilterResult(plugin.name, result))
        if isinstance(result, Plan):
            return PostFiltered(
                result, result.message, result.nominate, tuple(remedies), tuple(results), is_preemption_attempted
            )
        if isinstance(result, PostFilterRefusal):
            remedies.append(result)
        if result.code is UNRESOLVABLE:
            reasons = list(result.reasons)
            break
        reasons += result.reasons
    nominate = next((remedy.nominate for remedy in reversed(remedies) if remedy.nominate is not None), None)
    return PostFiltered(None, ", ".join(reasons), nominate, tuple(remedies), tuple(results), is_preemption_attempted)


class NodeDiagnosis:
    """The framework's `Diagnosis`."""

    __slots__ = ("_cycle", "_rejected")

    def __init__(self, rejected: Rejected, cycle: EngineCycle) -> None:
        self._rejected = rejected
        self._cycle = cycle

    @property
    def rejections(self) -> Mapping[str, tuple[str, Refusal]]:
        return MappingProxyType(self._rejected)

    @property
    def cycle(self) -> PluginCycle:
        return self._cycle.shown

    def resolvable_nodes(self) -> NodeRows:
        return self._rejected.resolvable_nodes()
