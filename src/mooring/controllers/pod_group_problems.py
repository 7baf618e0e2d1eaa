"""Why the pods of a PodGroup can never be scheduled together, of both APIs that have the kind.

A group may need more than all nodes together have; that is found from its numbers, and from what its pods request once
enough of them exist. Or it names a topology that no node is part of. Only what no order of events can change is a
problem here: the scheduler reports the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mooring.controllers.cluster_room import ClusterRoom
from mooring.controllers.problem_events import ObjectProblem
from mooring.objects import Pod
from mooring.objects.meta import KubeObject
from mooring.objects.pod_groups import PodGroup
from mooring.objects.quantity import BadQuantity
from mooring.objects.requests import Amounts, in_units
from mooring.plugins.community.capacity_scheduling.quotas import shown_amount
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup, group_name

NOT_FOUND, INVALID, TOO_LARGE = "PodGroupNotFound", "InvalidPodGroup", "PodGroupTooLarge"
NO_DOMAIN = "PodGroupTopologyNotFound"

G = TypeVar("G", bound=KubeObject)


@dataclass(frozen=True)
class GroupApi(Generic[G]):
    """What differs between the APIs: how a pod names its group, and where the group has its numbers."""

    type: type[G]
    name_of: Callable[[Pod], str]
    least_of: Callable[[G], int]
    """How many pods must be placed together; 0: each by itself."""
    field: str
    resources_of: Callable[[G], Mapping[str, str | int]] = lambda _: {}
    topology_key_of: Callable[[G], str | None] = lambda _: None
    """The node label that all its pods must share a value of."""

    def keys(self, pod: Pod) -> list[str]:
        """The group that the pod names, or none: the keys of an index."""
        return [f"{pod.namespace}/{name}"] if (name := self.name_of(pod)) else []


COSCHEDULING = GroupApi(
    CoschedulingGroup,
    name_of=lambda pod: group_name(pod.labels),
    least_of=lambda group: group.spec.min_member,
    field="spec.minMember",
    resources_of=lambda group: group.spec.min_resources or {},
)
GANG = GroupApi(
    PodGroup,
    name_of=lambda pod: pod.pod_group_name or "",
    least_of=lambda group: group.min_count or 0,
    field="spec.schedulingPolicy.gang.minCount",
    topology_key_of=lambda group: group.topology_key,
)


def missing_group(api: GroupApi[G], key: str) -> ObjectProblem:
    """Of a pod that names a group which does not exist."""
    return ObjectProblem(NOT_FOUND, f"PodGroup {key} ({api.type.KIND.group}) does not exist; the pod waits for it")


def problem_of_group(api: GroupApi[G], group: G, members: Sequence[Pod], room: ClusterRoom) -> ObjectProblem | None:
    """Why the nodes can never hold it. `members`: its pods that have not ended."""
    least = api.least_of(group)
    try:
        wanted = _min_resources(api.resources_of(group))
    except ValueError as problem:
        return ObjectProblem(INVALID, str(problem))
    message = (
        _too_many(api, least, room)
        or _too_much(wanted, room)
        or (_too_large_members(api, least, members, room) if len(members) >= least > 0 else "")
    )
    if message:
        return ObjectProblem(TOO_LARGE, message)
    if (key := api.topology_key_of(group)) is not None and not room.has_label(key):
        field = "spec.schedulingConstraints.topology[0].key"
        return ObjectProblem(NO_DOMAIN, f"{field} is {key}, and {_none_of(room)} has a label of this key")
    return None


def _min_resources(given: Mapping[str, str | int]) -> Amounts:
    amounts: Amounts = {}
    for resource, text in given.items():
        try:
            amounts |= in_units({resource: text})
        except BadQuantity as problem:
            raise ValueError(f"spec.minResources.{resource}: {problem}") from problem
    return amounts


def _too_many(api: GroupApi[G], least: int, room: ClusterRoom) -> str:
    most = room.most_pods({})
    return f"{api.field} is {least}, and {_nodes(room)} can run {most} pods" if most < least else ""


def _too_much(wanted: Amounts, room: ClusterRoom) -> str:
    for resource, amount in wanted.items():
        if amount > (total := room.total(resource)):
            needs, has = shown_amount(resource, amount), shown_amount(resource, total)
            return f"spec.minResources.{resource} is {needs}, and {_nodes(room)} can hold {has}"
    return ""


def _too_large_members(api: GroupApi[G], least: int, members: Sequence[Pod], room: ClusterRoom) -> str:
    smallest = _smallest(members)
    if (most := room.most_pods(smallest)) >= least:
        return ""
    requests = ", ".join(
        f"{resource} {shown_amount(resource, amount)}" for resource, amount in sorted(smallest.items())
    )
    return (
        f"{api.field} is {least}; its pods request at least {requests} each, and {_nodes(room)} can run {most} of them"
    )


def _smallest(members: Sequence[Pod]) -> Amounts:
    """What every one of the pods requests at least."""
    requests = [pod.requests.amounts for pod in members]
    names = set(requests[0]).intersection(*requests[1:])
    return {name: least for name in names if (least := min(amounts[name] for amounts in requests)) > 0}


def _none_of(room: ClusterRoom) -> str:
    return f"none of {room.nodes} nodes" if room.nodes > 1 else "no node"


def _nodes(room: ClusterRoom) -> str:
    return f"all {room.nodes} nodes" if room.nodes > 1 else f"{room.nodes or 'no'} node"
