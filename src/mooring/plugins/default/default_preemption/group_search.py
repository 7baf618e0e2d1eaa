"""Victims for a pod group: which pods of the whole cluster are evicted so that the group fits.

All units of lower priority are evicted in a trial. If the group fits then, each is reprieved in order and stays where
the group still fits. A unit is a pod, or all pods of a group whose disruptionMode is PodGroup.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mooring.framework import UNRESOLVABLE, PlacedPod, PodGroupPlan, PodGroups, PodGroupTrial, Refusal
from mooring.plugins.default.default_preemption.budgets import Budgets

NO_VICTIMS = Refusal("No preemption victims found for incoming preemptor", code=UNRESOLVABLE)
NOT_STARTED = float("inf")


class VictimUnit(msgspec.Struct):
    """Pods that are evicted together, or not at all."""

    priority: int
    pods: list[PlacedPod]

    @property
    def importance(self) -> tuple[int, bool, int, float]:
        """Sorted by it, the most important unit is first.

        A pod that names a group counts as one, also if it would be evicted alone.
        """
        is_group = bool(self.pods[0].group)
        started = self.pods[0].started
        return (
            -self.priority,
            not is_group,
            -len(self.pods) if is_group else 0,
            NOT_STARTED if started is None else started,
        )


def units_of(pods: Sequence[PlacedPod], groups: PodGroups) -> list[VictimUnit]:
    """The units that these pods form."""
    units: list[VictimUnit] = []
    of_groups: dict[str, VictimUnit] = {}
    for pod in pods:
        group = groups.get(pod.namespace, pod.group) if pod.group else None
        if group is None or not group.is_disrupted_as_a_whole:
            units.append(VictimUnit(pod.priority, [pod]))
        elif (unit := of_groups.get(group.uid)) is not None:
            unit.pods.append(pod)
        else:
            of_groups[group.uid] = unit = VictimUnit(group.priority, [pod])
            units.append(unit)
    return units


async def find_victims(
    priority: int, trial: PodGroupTrial, groups: PodGroups, budgets: Budgets
) -> PodGroupPlan | Refusal:
    """The pods to evict for a group of this priority."""
    units = [unit for unit in units_of(trial.pods, groups) if unit.priority < priority]
    if not units:
        return NO_VICTIMS
    for unit in units:
        trial.evict(unit.pods)
    refusal = await trial.refusal()
    if refusal is not None:
        return refusal
    units.sort(key=lambda unit: unit.importance)
    is_violating = budgets.violating_units([unit.pods for unit in units])
    protected = [unit for unit, violates in zip(units, is_violating, strict=True) if violates]
    others = [unit for unit, violates in zip(units, is_violating, strict=True) if not violates]
    victims = []
    for unit in (*protected, *others):
        trial.reprieve(unit.pods)
        if await trial.refusal() is not None:
            trial.evict(unit.pods)
            victims.append(unit)
    victims.sort(key=lambda unit: unit.importance)
    return PodGroupPlan(tuple(pod for unit in victims for pod in unit.pods))
