"""PostFilter: plugins that try to make room for a pod that fits no node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.base.errors import PluginFault, StateMissing
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, check_reasons, fault
from mooring.engine.rejected import Rejected
from mooring.engine.what_if import EngineWhatIf
from mooring.framework import UNRESOLVABLE, NodeView, Plan, Refusal, Remedy

CLEAR = ""
"""Clear an earlier nomination."""

NO_STATE = "not found"


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What PostFilter plugins returned: a plan, or a message that follows the failure message."""

    plan: Plan | None = None
    message: str = ""
    nominate: str | None = None
    """The node that the pod is nominated to from now on; "" for none, None for no change."""
    remedies: tuple[Remedy, ...] = ()
    """What plugins without a plan request nevertheless."""
    answers: tuple[tuple[str, Plan | Refusal | PluginFault], ...] = ()
    """Per plugin that ran, in order."""


def run_post_filters(cycle: EngineCycle, rejected: Rejected) -> PostFiltered:
    """Run them in order until one returns a plan. Unresolvable or a fault ends it, and its message alone remains."""
    if not cycle.profile.post_filters:
        return PostFiltered(nominate=CLEAR)
    answers: list[tuple[str, Plan | Refusal | PluginFault]] = []
    reasons: list[str] = []
    remedies: list[Remedy] = []
    for plugin in cycle.profile.post_filters:
        cycle.stage = Stage.POST_FILTER
        try:
            with calling(cycle, plugin, ExtensionPoint.POST_FILTER):
                answer = plugin.post_filter(cycle.pod, NodeEvidence(rejected, cycle), EngineWhatIf(cycle))
            if not isinstance(answer, Plan | Refusal):
                what = f"post_filter returned {answer!r}; it must return a Plan or a Refusal"
                raise fault(plugin, ExtensionPoint.POST_FILTER, what)
            if isinstance(answer, Refusal):
                check_reasons(plugin, ExtensionPoint.POST_FILTER, answer)
        except PluginFault as problem:
            # kube-scheduler's message where the plugin's PreFilter never ran; a real fault names its plugin.
            message = NO_STATE if isinstance(problem.__cause__, StateMissing) else str(problem)
            return PostFiltered(message=message, answers=(*answers, (plugin.name, problem)))
        answers.append((plugin.name, answer))
        if isinstance(answer, Plan):
            return PostFiltered(answer, answer.message, answer.nominate, tuple(remedies), tuple(answers))
        if isinstance(answer, Remedy):
            remedies.append(answer)
        if answer.code is UNRESOLVABLE:
            reasons = list(answer.reasons)
            break
        reasons += answer.reasons
    nominate = next((remedy.nominate for remedy in reversed(remedies) if remedy.nominate is not None), None)
    return PostFiltered(None, ", ".join(reasons), nominate, tuple(remedies), tuple(answers))


class NodeEvidence:
    """The framework's `Evidence`."""

    __slots__ = ("cycle", "rejections")

    def __init__(self, rejected: Rejected, cycle: EngineCycle) -> None:
        self.rejections = rejected
        self.cycle = cycle

    def resolvable_nodes(self) -> Iterable[NodeView]:
        return self.rejections.resolvable_nodes()
