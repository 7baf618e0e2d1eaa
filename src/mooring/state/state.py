"""The scheduler's cache: nodes, the pods on them, and the pending pods.

The watch is authoritative; only assumed pods are ahead of it. Every change goes through a verb here, which keeps
columns, tallies, sums and carried terms in step. Nothing here decides anything about a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mooring.base.errors import Fault
from mooring.base.log import Log
from mooring.framework import ALL_NODES, NodesWhere, PodsWhere
from mooring.objects import Node, Pod
from mooring.objects.placed import PlacedPod, placed
from mooring.objects.quantity import BadQuantity
from mooring.state.affinity_terms import AffinityTerms
from mooring.state.changes import ChangeLog
from mooring.state.comparer import differences
from mooring.state.images import ImageSummary
from mooring.state.nominations import NominatedAhead, Nominations
from mooring.state.pod_classes import PodClasses
from mooring.state.pod_groups import PodGroupIndex, PodGroupMembers
from mooring.state.pod_sets import CHECKED_AFTER, PodIndex, count_pod
from mooring.state.pods_by_importance import LowerPriorityPods, PodsByImportance
from mooring.state.table import NodeTable
from mooring.state.tallies import StandingTally
from mooring.state.views import Rows, RowView, pods_on
from mooring.state.what_if import WhatIfNode, WhatIfs

log = Log("state")

MOST_UNUSED_TERMS = 4_096
"""Beyond so many, terms that no pod carries are dropped."""


class State:
    """The cluster as one thread sees it between two decisions."""

    def __init__(self) -> None:
        self._table = NodeTable()
        self.views: Sequence[RowView | None] = self._table.views
        """The node of each row; None where there is none (any more)."""
        self.node_changes: ChangeLog = self._table.node_changes
        """Rows whose node object changed."""
        self.request_changes: ChangeLog = self._table.request_changes
        """Rows whose pods request or hold something else."""
        self.pod_changes: ChangeLog = self._table.pod_changes
        """Rows whose pods changed."""
        self._pods: dict[str, PlacedPod] = {}
        self._on_unknown_nodes: dict[str, dict[str, PlacedPod]] = {}
        """Pods on nodes that are not in the cache (yet, or any more), by node name."""
        self._index = PodIndex(self._table)
        self._waiting: dict[str, Pod] = {}
        self._waiting_classes: PodClasses[Pod] = PodClasses()
        """No standing sets: gangs are counted once in a while, and a pod leaves at each pop."""
        self._pod_groups = PodGroupIndex()
        self._terms = AffinityTerms(self._table)
        self.existing_affinity_terms = self._terms.selecting
        """The terms of existing pods that select a pod."""
        self.nominations = Nominations()
        self._by_importance = PodsByImportance(self._table)
        self._priorities: Counter[int] = Counter()
        """How many pods on nodes have each priority."""
        self._what_ifs = WhatIfs(self._table, self._index, self._terms)

    # Nodes

    @property
    def node_count(self) -> int:
        return len(self._table.row_of)

    @property
    def nodes(self) -> Rows:
        """Every node, in the order of rows."""
        return self._table.all()

    def nominated_ahead_of(self, pod: Pod) -> NominatedAhead:
        """The nominated pods that count as being on their nodes for this pod."""
        return self.nominations.ahead_of(pod, self._table)

    def node(self, name: str) -> RowView | None:
        return self._table.get(name)

    @property
    def row_capacity(self) -> int:
        """How many cells a column has."""
        return self._table.capacity

    def image(self, name: str) -> ImageSummary | None:
        """An image by one of its names; None if no node lists it."""
        return self._table.images.get(name)

    def set_node(self, node: Node) -> Node | None:
        """Add or replace a node. Returns the object it replaces."""
        view = self._table.get(node.name)
        if view is None:
            view = self._table.add(node)
            for pod in self._on_unknown_nodes.pop(node.name, {}).values():
                self._table.put_pod(view, pod)
                count_pod(self._terms, pod, view.row, self._index.selecting(pod), 1)
            return None
        old = view.object
        if old.labels == node.labels and old.spec.taints == node.spec.taints:
            self._table.replace(view, node)
            return old
        self._count_all(view, -1)
        self._table.replace(view, node)
        self._count_all(view, 1)
        return old

    def remove_node(self, name: str) -> Node | None:
        """Remove a node. Its pods stay known until they are deleted themselves."""
        view = self._table.get(name)
        if view is None:
            return None
        for pod in view.pods:
            count_pod(self._terms, pod, view.row, self._index.selecting(pod), -1)
            self._table.take_pod(view, pod)
            self._on_unknown_nodes.setdefault(name, {})[pod.uid] = pod
        self._table.remove(view)
        return view.object

    def _count_all(self, view: RowView, sign: int) -> None:
        """The pods on a row, whose domains are about to change (-1) or have changed (1)."""
        for pod in view.placed.values():
            count_pod(self._terms, pod, view.row, self._index.selecting(pod), sign)

    # Pods on nodes

    def pod(self, uid: str) -> PlacedPod | None:
        return self._pods.get(uid)

    def pod_counts(self) -> tuple[int, int]:
        """How many pods are assumed, and how many there are on nodes in all. Safe to call on another thread."""
        pods = list(self._pods.values())
        return sum(1 for pod in pods if pod.assumed_at is not None), len(pods)

    def is_assumed(self, uid: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and pod.assumed_at is not None

    def set_pod(self, pod: PlacedPod) -> PlacedPod | None:
        """A pod on a node, from the watch: new, changed, or confirming what we assumed. Returns the old one."""
        old = self._pods.get(pod.uid)
        if old is not None and old.assumed_at is not None and old.node != pod.node:
            log.info(
                "Pod was added to a different node than it was assumed",
                pod=pod.key,
                assumedNode=old.node,
                currentNode=pod.node,
            )
        if old is not None and counts_alike(old, pod):
            self._priorities[pod.priority] += 1
            self._count_priority_out(old)
            if pod.group:
                self._pod_groups.put(pod)
            if old.labels == pod.labels:
                self._replace(pod)
            else:
                self._relabel(old, pod)
            return old
        if old is not None:
            self._take(old)
            if old.group and (old.namespace, old.group) != (pod.namespace, pod.group):
                self._pod_groups.take(old, None)
        self._add(pod)
        return old

    def remove_pod(self, uid: str) -> PlacedPod | None:
        pod = self._pods.get(uid)
        if pod is not None:
            self._remove(pod)
        return pod

    def assume(self, pod: Pod, node: str, at: float) -> PlacedPod:
        """Count the pod on the node we decided for, before the watch confirms it."""
        known = self._pods.get(pod.uid)
        if known is not None:
            raise Fault(f"pod {pod.key} (uid {pod.uid}) is already on node {known.node}; it cannot be assumed again")
        try:
            record = placed(pod, node, assumed_at=at)
        except BadQuantity as problem:
            raise Fault(f"pod {pod.key} cannot be assumed: {problem}") from problem
        self.nominations.remove(pod.uid)
        self._add(record)
        return record

    def forget(self, uid: str) -> PlacedPod | None:
        """Forget an assumed pod. One that the watch has confirmed stays."""
        pod = self._pods.get(uid)
        if pod is None:
            return None
        if pod.assumed_at is None:
            raise Fault(f"pod {pod.key} (uid {uid}) was confirmed on node {pod.node}; it cannot be forgotten")
        self._remove(pod)
        return pod

    def withdraw_from_group(self, uid: str) -> None:
        """An assumed pod is about to be forgotten: its pod group counts it as unscheduled from now on."""
        pod = self._pods.get(uid)
        if pod is not None and pod.group and pod.assumed_at is not None:
            self._pod_groups.withdraw(pod, self._waiting.get(uid))

    # Trials: pods are taken off their nodes and put back while one decision is made. Their pod groups still count them.
    # Pods of a group are assumed one after the other, and all of them are forgotten.

    def assume_in_trial(self, pod: Pod, node: str, at: float) -> PlacedPod:
        """`assume`, to see what else fits. Undone by `forget`."""
        record = self.assume(pod, node, at)
        if record.group:
            self._pod_groups.put_in_trial(record)
        return record

    def evict_in_trial(self, pod: PlacedPod) -> None:
        """Take a pod off its node, to see what fits without it. Undone by `restore_in_trial`."""
        self._take(self._pods[pod.uid])

    def restore_in_trial(self, pod: PlacedPod) -> None:
        self._put(pod)

    def _add(self, pod: PlacedPod) -> None:
        """The pod is on its node from now on."""
        self._put(pod)
        if pod.group:
            self._pod_groups.put(pod)

    def _remove(self, pod: PlacedPod) -> None:
        self._take(pod)
        if pod.group:
            self._pod_groups.take(pod, self._waiting.get(pod.uid))

    def _put(self, pod: PlacedPod) -> None:
        self._pods[pod.uid] = pod
        self._priorities[pod.priority] += 1
        touched = self._index.put(pod)
        view = self._table.get(pod.node)
        if view is None:
            self._on_unknown_nodes.setdefault(pod.node, {})[pod.uid] = pod
        else:
            self._table.put_pod(view, pod)
            count_pod(self._terms, pod, view.row, touched, 1)

    def _take(self, pod: PlacedPod) -> None:
        del self._pods[pod.uid]
        self._count_priority_out(pod)
        touched = self._index.take(pod)
        view = self._table.get(pod.node)
        if view is None:
            there = self._on_unknown_nodes[pod.node]
            del there[pod.uid]
            if not there:
                del self._on_unknown_nodes[pod.node]
        else:
            count_pod(self._terms, pod, view.row, touched, -1)
            self._table.take_pod(view, pod)
        self._terms.forget(pod.uid)
        if self._terms.unused > MOST_UNUSED_TERMS:
            self._terms.drop_unused()

    def _replace(self, pod: PlacedPod) -> None:
        """A newer record that counts alike, on the same node: only what is read of it changes."""
        self._pods[pod.uid] = pod
        self._index.replace(pod)
        view = self._table.get(pod.node)
        if view is None:
            self._on_unknown_nodes[pod.node][pod.uid] = pod
        else:
            pods_on(view)[pod.uid] = pod
            self._table.pod_changes.record(view.row)

    def _relabel(self, old: PlacedPod, pod: PlacedPod) -> None:
        """A record that differs in its labels only, as that of nearly every pod that we bind: the API server copies the
        zone and the region of its node to it."""
        self._pods[pod.uid] = pod
        left, joined = self._index.relabel(old, pod)
        view = self._table.get(pod.node)
        if view is None:
            self._on_unknown_nodes[pod.node][pod.uid] = pod
            return
        pods_on(view)[pod.uid] = pod
        for pods in left:
            pods.count(view.row, -1)
        for pods in joined:
            pods.count(view.row, 1)
        self._table.pod_changes.record(view.row)

    # Counts of pods

    def tally(self, pods: PodsWhere, key: str, on: NodesWhere = ALL_NODES) -> StandingTally:
        """The standing count of these pods per value of the label; kept from the first call on."""
        return self._index.pod_set(pods).tally(key, on)

    def trim(self) -> None:
        """Keep what stands for decisions to come within limits. Between two decisions only."""
        self._index.moved.forget_followers()
        if self._index.made >= CHECKED_AFTER:
            self._index.trim()
        if self._table.has_new_labels:
            self._table.drop_unused_labels()

    def total(self, pods: PodsWhere, resource: str) -> int:
        """The standing sum of what these pods request; also of pods on nodes that are not in the cache."""
        return self._index.pod_set(pods).total(resource)

    def placed(self, where: PodsWhere) -> list[PlacedPod]:
        """The pods on nodes that match, assumed ones among them."""
        return self._index.members(where)

    def claim_uses(self, namespace: str, claims: Iterable[str]) -> int:
        """How often pods on nodes use these claims; see `VolumesInUse`."""
        return self._table.volumes.claim_uses(namespace, claims)

    # Pending pods

    def set_pending(self, pod: Pod) -> None:
        old = self._waiting.pop(pod.uid, None)
        if old is not None:
            self._waiting_classes.take(old)
            if (old.namespace, old.pod_group_name) != (pod.namespace, pod.pod_group_name):
                self._pod_groups.remove_pending(old)
        self._waiting[pod.uid] = pod
        self._waiting_classes.put(pod)
        if pod.spec.scheduling_group is not None:
            self._pod_groups.put_pending(pod)

    def remove_pending(self, uid: str) -> Pod | None:
        pod = self._waiting.pop(uid, None)
        if pod is not None:
            self._waiting_classes.take(pod)
            if pod.spec.scheduling_group is not None:
                self._pod_groups.remove_pending(pod)
        return pod

    def pending(self, where: PodsWhere) -> list[Pod]:
        """The pending pods that match. One that is assumed counts as placed, not as pending."""
        return [pod for pod in self._waiting_classes.matching(where) if pod.uid not in self._pods]

    def pod_group(self, namespace: str, name: str) -> PodGroupMembers | None:
        """The pods of a group; None if no pod names it."""
        return self._pod_groups.groups.get((namespace, name))

    # What-ifs

    def what_if(self, node: str, *, without: Iterable[PlacedPod] = (), adding: Iterable[PlacedPod] = ()) -> WhatIfNode:
        """Inside the `with`, the pods of `without` are evicted from the node, and those of `adding` are on it."""
        view = self._table.get(node)
        if view is None:
            raise Fault(f"there is no node {node} for a what-if")
        return WhatIfNode(self._what_ifs, view, without, adding)

    def lower_priority_pods(self, priority: int, nodes: Rows) -> LowerPriorityPods:
        """The pods below a priority on these nodes; outside a what-if only."""
        if self._what_ifs.is_active:
            raise Fault("pods of lower priority are listed outside a what-if")
        if min(self._priorities, default=priority) >= priority:
            return self._by_importance.none(nodes)
        return self._by_importance.below(priority, nodes)

    def _count_priority_out(self, pod: PlacedPod) -> None:
        self._priorities[pod.priority] -= 1
        if not self._priorities[pod.priority]:
            del self._priorities[pod.priority]

    def compare(self, nodes: Iterable[Node], pods: Iterable[PlacedPod]) -> list[str]:
        """Where the state differs from the objects of the API server; each difference a sentence."""
        return differences(self._table, self._pods, nodes, pods)


def counts_alike(old: PlacedPod, new: PlacedPod) -> bool:
    """Whether columns, terms, ports and volumes are the same for both records; sets of pods depend on labels too.

    One that does not count alike is taken off its node and put back, behind the others.
    """
    return (
        old.node == new.node
        and old.namespace == new.namespace
        and old.is_terminating == new.is_terminating
        and old.requests == new.requests
        and old.affinity == new.affinity
        and old.ports == new.ports
        and old.volumes == new.volumes
    )
