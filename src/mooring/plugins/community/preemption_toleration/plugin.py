"""DefaultPreemption, less the pods that their PriorityClass exempts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mooring.base.errors import PluginFault
from mooring.framework import (
    UNRESOLVABLE,
    Clock,
    Diagnosis,
    FeatureGates,
    NodeRows,
    Objects,
    PlacedPod,
    Plan,
    Pod,
    PodGroups,
    PostFilterRefusal,
    Preemptions,
    Refusal,
    WhatIf,
)
from mooring.framework.preemption import MESSAGE_PREFIX, least_disruptive
from mooring.framework.verdicts import no_node_available
from mooring.objects.policy import PodDisruptionBudget
from mooring.objects.scheduling import PriorityClass
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.preemption_toleration.search import TolerantSearch, no_victims
from mooring.plugins.community.preemption_toleration.tolerations import ClassedPod, ClassMissing, PreemptionTolerations
from mooring.plugins.default.default_preemption.plugin import (
    NEVER,
    NOT_HELPFUL,
    STILL_TERMINATING,
    DefaultPreemption,
    DefaultPreemptionArgs,
)
from mooring.plugins.default.default_preemption.search import NO_VICTIMS, Search

SOONEST_RETRY_SECONDS = 10.0
"""Many tolerations may end one after the other, and each search visits every node."""
LATEST_RETRY_SECONDS = 300.0
"""The queue retries an unschedulable pod after five minutes in any case."""


class PreemptionTolerationArgs(DefaultPreemptionArgs):
    """Arguments of PreemptionToleration: those of DefaultPreemption."""

    compatibility: Compatibility = "mooring"


class PreemptionToleration(DefaultPreemption):
    """Evict pods of lower priority, but spare those whose PriorityClass tolerates preemption."""

    def __init__(
        self,
        args: PreemptionTolerationArgs,
        budgets: Objects[PodDisruptionBudget],
        preemptions: Preemptions,
        classes: Objects[PriorityClass],
        pods: Objects[ClassedPod],
        clock: Clock,
        groups: PodGroups,
        gates: FeatureGates,
    ) -> None:
        super().__init__(args, budgets, preemptions, groups, gates)
        self._clock = clock
        self._tolerations = PreemptionTolerations(classes, pods)
        self._is_compatible = args.compatibility == "scheduler-plugins"

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        if pod.spec.preemption_policy == "Never":
            return Refusal(NEVER.removeprefix(MESSAGE_PREFIX))
        if _is_any_terminating(pod, refused):
            return Refusal(STILL_TERMINATING.removeprefix(MESSAGE_PREFIX))
        every_node, nodes = refused.cycle.nodes, refused.resolvable_nodes()
        wanted = min(len(nodes), max(len(nodes) * self._percentage // 100, self._at_least))
        if not self._is_compatible and not self._tolerations.may_exempt(pod):
            # The usual case: thousands of nodes in vectorized passes.
            search = Search(pod, what_if, self._budgets, every_node)
            search.run(nodes, wanted)
            if search.candidates:
                chosen = search.candidates.least_disruptive(what_if.seed)
                return Plan(nominate=chosen.node, evict=chosen.victims, candidates=search.candidates)
            return self._no_candidate(search, len(nodes), len(every_node))
        tolerant, ends = self._tolerant_search(pod, what_if, every_node)
        tolerant.run(nodes, wanted)
        if not tolerant.candidates:
            return self._no_candidate(tolerant, len(nodes), len(every_node), self._seconds_until(ends))
        chosen = least_disruptive(tolerant.candidates, what_if.seed)
        return Plan(nominate=chosen.node, evict=chosen.victims, candidates=tolerant.candidates)

    def _tolerant_search(
        self, pod: Pod, what_if: WhatIf, every_node: NodeRows
    ) -> tuple[TolerantSearch, Iterable[float]]:
        """The search, and when the tolerations end that it meets."""
        now = self._clock.now()
        ends: set[float] = set()

        def is_exempt(victim: PlacedPod) -> bool:
            try:
                until = self._tolerations.exempt_until(victim, pod)
            except ClassMissing:
                if self._is_compatible:
                    raise
                return False  # a class that is gone tolerates nothing; it must not protect its whole node
            if until > now:
                ends.add(until)
            return until > now

        search = TolerantSearch(
            pod,
            what_if,
            self._budgets,
            every_node,
            is_exempt,
            no_victims if self._is_compatible else lambda _node, _pod: NO_VICTIMS,
        )
        return search, ends

    def _seconds_until(self, ends: Iterable[float]) -> float | None:
        """How long until the first of them: no event reports the end of a toleration."""
        seconds = min(ends, default=math.inf) - self._clock.now()
        if self._is_compatible or seconds > LATEST_RETRY_SECONDS:
            return None
        return max(seconds, SOONEST_RETRY_SECONDS)

    def _no_candidate(
        self, search: Search | TolerantSearch, tried: int, nodes: int, retry_after: float | None = None
    ) -> Refusal:
        if faults := search.faults:
            raise PluginFault(self.name, ", ".join(faults) if len(faults) == 1 else f"[{', '.join(faults)}]")
        refused = search.refused()
        reasons = refused.reasons()
        if tried < nodes:
            reasons[NOT_HELPFUL] = nodes - tried
        message = no_node_available(nodes, reasons)
        return PostFilterRefusal(message, nominate="", tried=refused, retry_after=retry_after)


def _is_any_terminating(pod: Pod, refused: Diagnosis) -> bool:
    """Whether a pod of lower priority is terminating on the nominated node, for whichever reason."""
    nominated = pod.status.nominated_node_name
    verdict = refused.rejections.get(nominated) if nominated else None
    if verdict is None or verdict[1].code is UNRESOLVABLE:
        return False
    node = next(node for node in refused.cycle.nodes if node.name == nominated)
    return any(placed.is_terminating and placed.priority < pod.priority for placed in node.pods)
