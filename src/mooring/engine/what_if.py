"""What post_filter plugins are given: the evidence against each node, and a state that can be changed and undone."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from mooring.base.errors import PluginFault
from mooring.engine.asking import POST_FILTER, asking, check_reasons, fault
from mooring.engine.cycle import EngineCycle, Stage
from mooring.engine.feasible import ask_pre_filters, passing
from mooring.engine.rejected import Rejected
from mooring.framework import UNRESOLVABLE, NodeView, PlacedPod, Plan, Pod, Refusal


class Suppositions:
    """The framework's `WhatIf` for one cycle."""

    def __init__(self, cycle: EngineCycle) -> None:
        self._cycle = cycle

    def without(self, node: NodeView, pods: Iterable[PlacedPod]) -> AbstractContextManager[None]:
        return self._cycle.state.what_if(node.name, without=pods)

    def fits(self, pod: Pod, node: NodeView) -> bool:
        """Pre_filters are asked again, because what they keep may depend on the pods that are supposed away."""
        cycle = self._cycle.supposing(pod)
        narrowed = ask_pre_filters(cycle)
        if narrowed.refusal is not None or (narrowed.only is not None and node.name not in narrowed.only):
            return False
        return bool(len(passing(cycle, cycle.nodes.of_rows(np.array([node.row])), [])))


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """What post_filter plugins proposed: a plan, or words that follow the failure message."""

    plan: Plan | None = None
    message: str = ""
    answers: tuple[tuple[str, Plan | Refusal | PluginFault], ...] = ()
    """Per plugin that was asked, in order."""


def post_filter(cycle: EngineCycle, rejected: Rejected) -> PostFiltered:
    """Ask in order until one has a plan. An unresolvable answer or a fault ends it, and its words alone remain."""
    answers: list[tuple[str, Plan | Refusal | PluginFault]] = []
    reasons: list[str] = []
    for plugin in cycle.profile.post_filters:
        cycle.stage = Stage.POST_FILTER
        try:
            with asking(cycle, plugin, POST_FILTER):
                answer = plugin.post_filter(cycle.pod, AgainstNodes(rejected), Suppositions(cycle))
            if not isinstance(answer, Plan | Refusal):
                what = f"post_filter returned {answer!r}; it must return a Plan or a Refusal"
                raise fault(plugin, POST_FILTER, what)
            if isinstance(answer, Refusal):
                check_reasons(plugin, POST_FILTER, answer)
        except PluginFault as problem:
            return PostFiltered(None, str(problem), (*answers, (plugin.name, problem)))
        answers.append((plugin.name, answer))
        if isinstance(answer, Plan):
            return PostFiltered(answer, answer.message, tuple(answers))
        if answer.code is UNRESOLVABLE:
            return PostFiltered(None, ", ".join(answer.reasons), tuple(answers))
        reasons += answer.reasons
    return PostFiltered(None, ", ".join(reasons), tuple(answers))


class AgainstNodes:
    """The framework's `Evidence`."""

    __slots__ = ("rejections",)

    def __init__(self, rejected: Rejected) -> None:
        self.rejections = rejected

    def curable(self) -> Iterable[NodeView]:
        return self.rejections.curable()
