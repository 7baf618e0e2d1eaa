"""What post_filter plugins are given: the evidence against each node, and a state that can be changed and undone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.base.errors import PluginFault, StateMissing
from mooring.engine.asking import POST_FILTER, asking, check_reasons, fault
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.rejected import Rejected
from mooring.engine.suppositions import Suppositions
from mooring.framework import UNRESOLVABLE, NodeView, Plan, Refusal, Remedy

CLEAR = ""
"""Take an earlier nomination away."""

NO_STATE = "not found"


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What post_filter plugins proposed: a plan, or words that follow the failure message."""

    plan: Plan | None = None
    message: str = ""
    nominate: str | None = None
    """The node that the pod is nominated to from now on; "" for none, None for no change."""
    remedies: tuple[Remedy, ...] = ()
    """What plugins that could make no room ask to be done."""
    answers: tuple[tuple[str, Plan | Refusal | PluginFault], ...] = ()
    """Per plugin that was asked, in order."""


def post_filter(cycle: EngineCycle, rejected: Rejected) -> PostFiltered:
    """Ask in order until one has a plan. An unresolvable answer or a fault ends it, and its words alone remain."""
    if not cycle.profile.post_filters:
        return PostFiltered(nominate=CLEAR)
    answers: list[tuple[str, Plan | Refusal | PluginFault]] = []
    reasons: list[str] = []
    remedies: list[Remedy] = []
    for plugin in cycle.profile.post_filters:
        cycle.stage = Stage.POST_FILTER
        try:
            with asking(cycle, plugin, POST_FILTER):
                answer = plugin.post_filter(cycle.pod, AgainstNodes(rejected, cycle), Suppositions(cycle))
            if not isinstance(answer, Plan | Refusal):
                what = f"post_filter returned {answer!r}; it must return a Plan or a Refusal"
                raise fault(plugin, POST_FILTER, what)
            if isinstance(answer, Refusal):
                check_reasons(plugin, POST_FILTER, answer)
        except PluginFault as problem:
            # kube-scheduler's two words where a plugin's pre_filter was never asked; a real fault names its plugin.
            words = NO_STATE if isinstance(problem.__cause__, StateMissing) else str(problem)
            return PostFiltered(message=words, answers=(*answers, (plugin.name, problem)))
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


class AgainstNodes:
    """The framework's `Evidence`."""

    __slots__ = ("cycle", "rejections")

    def __init__(self, rejected: Rejected, cycle: EngineCycle) -> None:
        self.rejections = rejected
        self.cycle = cycle

    def curable(self) -> Iterable[NodeView]:
        return self.rejections.curable()
