"""TeamQuota: a team may request only so much CPU at a time, as its `Quota` object allows.

The team of a pod stands in a label; the quota is a cluster-scoped custom resource of the team's name. A team without
one has no limit.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.framework import (
    Action,
    Args,
    CustomResource,
    Cycle,
    Hint,
    Objects,
    PlacedPod,
    Plugin,
    Pod,
    PodsWhere,
    Refusal,
    ResourcePart,
    Skip,
)
from mooring.objects.quantity import milli


class QuotaSpec(ResourcePart):
    cpu: str


class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Cluster"):
    spec: QuotaSpec


class TeamQuotaArgs(Args):
    label: str = "team"


class TeamQuota(Plugin):
    """Refuse pods whose team has used up its CPU quota."""

    def __init__(self, args: TeamQuotaArgs, quotas: Objects[Quota]) -> None:
        self._label, self._quotas = args.label, quotas

    def events(self) -> Iterable[Hint]:
        return [
            Hint(Quota, Action.ADD | Action.UPDATE | Action.DELETE, self._is_own_quota),
            Hint(Pod, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._is_same_team),
        ]

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip | Refusal:
        team = pod.labels.get(self._label)
        quota = self._quotas.get(team) if team is not None else None
        if team is None or quota is None:
            return Skip()
        used = cycle.total(PodsWhere.labelled({self._label: team}), "cpu")
        limit = milli(quota.spec.cpu)
        if used + pod.request("cpu") > limit:
            return Refusal(
                f"team {team} has {limit - used}m of its {limit}m CPU left, the pod wants {pod.request('cpu')}m"
            )
        return Skip()

    def _is_own_quota(self, pod: Pod, before: Quota | None, after: Quota | None) -> bool:
        changed = after or before
        return changed is not None and changed.name == pod.labels.get(self._label)

    def _is_same_team(self, pod: Pod, before: Pod | PlacedPod, after: Pod | PlacedPod | None) -> bool:
        return before.labels.get(self._label) == pod.labels.get(self._label)
