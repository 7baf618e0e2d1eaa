"""SchedulingGates: a pod with scheduling gates is not tried until they are gone."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import UNRESOLVABLE, Action, Hint, Plugin, Pod, Refusal


class SchedulingGates(Plugin):
    """Keep pods with `spec.schedulingGates` out of the queue."""

    def events(self) -> Iterable[Hint]:
        return [Hint(Pod, Action.UPDATE_POD_GATES_ELIMINATED, self._is_this_pod, per_template=True)]

    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        if not pod.spec.scheduling_gates:
            return None
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Refusal(f"waiting for scheduling gates: [{gates}]", code=UNRESOLVABLE)

    def _is_this_pod(self, pod: Pod, before: Pod, after: Pod) -> bool:
        return after.uid == pod.uid
