"""Deletion of pods: the fewest of some candidates without which a plugin accepts the node.

Not of pods that belong with the pod (of its controller, its pod group or its quota), nor of those that a disruption
budget protects. What a controller creates again is decided again when the proposal is verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.framework import PlacedPod, Pod
from mooring.objects.policy import PodDisruptionBudget
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL
from mooring.why.changes import ProposedChange, command
from mooring.why.owner_kinds import STAYS, owner_of
from mooring.why.proposals.rejected_node import Gap, RejectedNode

MOST_NAMED = 5
"""A proposal to delete more pods than this is none."""
SYSTEM_CRITICAL = 2_000_000_000
"""Pods of this priority and above run the cluster."""


def gap(case: RejectedNode) -> Gap:
    """For plugins of which nothing else is known: their own words."""
    return Gap(f"is rejected: {'; '.join(case.refusal.reasons) or case.plugin}")


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    """Fewer pods on the node."""
    yield from deletions(case, case.view.pods)


def deletions(case: RejectedNode, candidates: Iterable[PlacedPod]) -> Iterator[ProposedChange]:
    """The fewest of the candidates, those of lower priority first; and the fewest that no controller creates again."""
    found: list[ProposedChange] = []
    for pods in _deletable(case, candidates):
        victims = _fewest(case, pods)
        if 0 < len(victims) <= MOST_NAMED and (deletion := _deletion(victims)) not in found:
            found.append(deletion)
    yield from found


def single(case: RejectedNode, candidates: Iterable[PlacedPod]) -> PlacedPod | None:
    """One pod without which the plugin would accept the node, whether or not it may be deleted."""
    pods = [pod for pod in candidates if pod.uid != case.pod.uid and not _comes_back(_known(case, pod))]
    return next((pod for pod in _smallest_first(pods) if not case.is_rejected_by(_deletion([pod]))), None)


def _deletable(case: RejectedNode, candidates: Iterable[PlacedPod]) -> Iterator[list[PlacedPod]]:
    """All that may be deleted; then those that no controller creates again."""
    pods = sorted((pod for pod in candidates if _can_go(case, pod)), key=lambda pod: (pod.priority, -_size(pod)))
    yield pods
    yield [pod for pod in pods if (known := _known(case, pod)) is None or owner_of(known) is None]


def _fewest(case: RejectedNode, pods: Sequence[PlacedPod]) -> list[PlacedPod]:
    if not pods or case.is_rejected_by(_deletion(pods)):
        return []
    one = next((pod for pod in _smallest_first(pods) if not case.is_rejected_by(_deletion([pod]))), None)
    return [one] if one is not None else _reprieved(case, pods)


def _smallest_first(pods: Sequence[PlacedPod]) -> list[PlacedPod]:
    return sorted(pods, key=lambda pod: (pod.priority, _size(pod)))


def _reprieved(case: RejectedNode, pods: Sequence[PlacedPod]) -> list[PlacedPod]:
    """The victims that remain when as many as possible stay, the most important first."""
    victims = list(pods)
    for pod in reversed(pods):
        fewer = [each for each in victims if each is not pod]
        if not case.is_rejected_by(_deletion(fewer)):
            victims = fewer
    return victims


def _can_go(case: RejectedNode, pod: PlacedPod) -> bool:
    known = _known(case, pod)
    return (
        pod.uid != case.pod.uid
        and pod.priority < SYSTEM_CRITICAL
        and not _comes_back(known)
        and not _is_protected(case, pod)
        and not (known is not None and _belongs_with(case, known))
    )


def _known(case: RejectedNode, pod: PlacedPod) -> Pod | None:
    return case.recomputation.pods.get(pod.uid)


def _comes_back(pod: Pod | None) -> bool:
    """Whether its owner creates it again at once, on the same node."""
    owners = pod.metadata.owner_references if pod is not None else ()
    return any(owner.controller and owner.kind in STAYS for owner in owners)


def _is_protected(case: RejectedNode, pod: PlacedPod) -> bool:
    """Whether a PodDisruptionBudget allows no eviction of it now; a deletion would not respect that."""
    return any(
        budget.namespace == pod.namespace
        and budget.spec.selector is not None
        and budget.status.disruptions_allowed <= 0
        and budget.spec.selector.matches(pod.labels)
        for budget in case.recomputation.known(PodDisruptionBudget)
    )


def _belongs_with(case: RejectedNode, other: Pod) -> bool:
    """Whether both are of one controller, one pod group or one quota: one would wait in place of the other."""
    pod = case.pod
    if other.namespace != pod.namespace:
        return False
    owner, group = owner_of(pod), _group(pod)
    return (
        (owner is not None and owner == owner_of(other))
        or (group is not None and group == _group(other))
        or any(quota.namespace == pod.namespace for quota in case.recomputation.known(ElasticQuota))
    )


def _group(pod: Pod) -> str | None:
    return pod.pod_group_name or pod.labels.get(GROUP_LABEL)


def _size(pod: PlacedPod) -> int:
    return pod.request("cpu") * 2**20 + pod.request("memory") // 2**10


def _deletion(pods: Sequence[PlacedPod]) -> ProposedChange:
    names = [pod.key for pod in pods]
    many = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    commands = [command("kubectl", "delete", "pod", pod.name, "-n", pod.namespace) for pod in pods]
    return ProposedChange(f"delete {many}", deleted=tuple(pod.uid for pod in pods), command=" && ".join(commands))
