"""Deletion of pods: the fewest of some candidates without which a plugin accepts the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.framework import PlacedPod
from mooring.why.changes import ProposedChange, command
from mooring.why.proposals.rejected_node import Gap, RejectedNode

MOST_NAMED = 5
"""A proposal to delete more pods than this is none."""
STAYS = ("DaemonSet", "Node")
"""Pods of these owners come back at once, on the same node."""


def gap(case: RejectedNode) -> Gap:
    """For plugins of which nothing else is known: their own words."""
    return Gap(f"is rejected: {'; '.join(case.refusal.reasons) or case.plugin}")


def changes(case: RejectedNode) -> Iterator[ProposedChange]:
    """Fewer pods on the node."""
    yield from deletions(case, case.view.pods)


def deletions(case: RejectedNode, candidates: Iterable[PlacedPod]) -> Iterator[ProposedChange]:
    """One proposal at most: the fewest of the candidates, those of lower priority first."""
    pods = sorted((pod for pod in candidates if _can_go(case, pod)), key=lambda pod: (pod.priority, -_size(pod)))
    if not pods or case.is_rejected_by(_deletion(pods)):
        return
    single = next((pod for pod in _smallest_first(pods) if not case.is_rejected_by(_deletion([pod]))), None)
    victims = [single] if single is not None else _reprieved(case, pods)
    if len(victims) <= MOST_NAMED:
        yield _deletion(victims)


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
    known = case.recomputation.pods.get(pod.uid)
    owners = known.metadata.owner_references if known is not None else ()
    return pod.uid != case.pod.uid and not any(owner.controller and owner.kind in STAYS for owner in owners)


def _size(pod: PlacedPod) -> int:
    return pod.request("cpu") * 2**20 + pod.request("memory") // 2**10


def _deletion(pods: Sequence[PlacedPod]) -> ProposedChange:
    names = [pod.key for pod in pods]
    many = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
    commands = [command("kubectl", "delete", "pod", pod.name, "-n", pod.namespace) for pod in pods]
    return ProposedChange(f"delete {many}", deleted=tuple(pod.uid for pod in pods), command=" && ".join(commands))
