"""The same results, computed again from plain dictionaries each time: what `State` must always agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mooring.framework import NodesWhere, PodsWhere, TermKind
from mooring.objects import Node, Pod
from mooring.objects.placed import PlacedPod
from mooring.objects.placement_rules import first_untolerated, selector_matches
from mooring.objects.selectors import Labels, LabelSelector
from mooring.state import State
from mooring.state.table import allocatable_of


class Naive:
    """Nodes and pods, and nothing standing."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, PlacedPod] = {}
        self.namespaces: dict[str, Labels] = {}
        self.going_and_gone: list[PlacedPod] = []
        """Pods that are being deleted and that a supposition takes away."""

    def evicted_from(self, where: PodsWhere) -> list[PlacedPod]:
        """Pods that a what-if takes off a count with `what_if_counts_all`, though they never counted."""
        return [
            pod
            for pod in self.going_and_gone
            if where.what_if_counts_all and not where.terminating and where.names(pod.namespace, pod.labels)
        ]

    def matching(self, where: PodsWhere) -> list[PlacedPod]:
        return [
            pod
            for pod in self.pods.values()
            if where.matches(pod.namespace, pod.labels, is_terminating=pod.is_terminating)
        ]

    def on_nodes(self, pods: Iterable[PlacedPod]) -> list[PlacedPod]:
        return [pod for pod in pods if pod.node in self.nodes]

    def per_domain(self, pods: Iterable[PlacedPod], key: str, on: NodesWhere) -> dict[str, int]:
        counted = {
            name: node.labels[key] for name, node in self.nodes.items() if counts(on, node) and key in node.labels
        }
        found = dict.fromkeys(counted.values(), 0)
        for pod in pods:
            if pod.node in counted:
                found[counted[pod.node]] += 1
        return found

    def total(self, where: PodsWhere, resource: str) -> int:
        return sum(1 if resource == "pods" else pod.request(resource) for pod in self.matching(where))

    def rows(self) -> dict[str, Any]:
        """Per node what its row must show."""
        shown = {}
        for name, node in self.nodes.items():
            pods = [pod for pod in self.pods.values() if pod.node == name]
            requested: Counter[str] = Counter(pods=len(pods))
            for pod in pods:
                requested.update(pod.requests.amounts)
            shown[name] = {
                "allocatable": allocatable_of(node),
                "requested": dict(requested),
                "nonzero cpu": sum(pod.requests.nonzero_cpu_milli for pod in pods),
                "nonzero memory": sum(pod.requests.nonzero_memory_bytes for pod in pods),
                "taints": tuple(node.spec.taints),
                "unschedulable": node.spec.unschedulable,
                "pods": {pod.uid: pod for pod in pods},
            }
        return shown

    def existing_affinity_terms(self, pod: Pod, kind: TermKind) -> Counter[Any]:
        """Topology key, weight and the carriers' counts per domain, for each term that selects the pod."""
        found: dict[Any, list[PlacedPod]] = {}
        for carrier in self.on_nodes(self.pods.values()):
            for weight, term in terms_of(carrier, kind):
                if self.selects(term, carrier, pod):
                    # Terms that select alike are one, as in `State`.
                    by_labels = term.namespace_selector and repr(term.namespace_selector.requirements())
                    home = frozenset(term.namespaces or ([] if term.namespace_selector else [carrier.namespace]))
                    identity = (term.topology_key, weight, term.label_selector.requirements(), home, by_labels)
                    found.setdefault(identity, []).append(carrier)
        return Counter(
            (identity[0], identity[1], tuple(sorted(self.per_domain(pods, identity[0], NodesWhere()).items())))
            for identity, pods in found.items()
        )

    def selects(self, term: Any, carrier: PlacedPod, pod: Pod) -> bool:
        namespaces = set(term.namespaces)
        if not namespaces and term.namespace_selector is None:
            namespaces = {carrier.namespace}
        labels = self.namespaces.get(pod.namespace, {})
        at_home = pod.namespace in namespaces or (
            term.namespace_selector is not None and term.namespace_selector.matches(labels)
        )
        selector: LabelSelector | None = term.label_selector
        return at_home and selector is not None and selector.matches(pod.labels)


def counts(on: NodesWhere, node: Node) -> bool:
    return (
        all(key in node.labels for key in on.keys)
        and all(node.labels.get(key) == value for key, value in on.node_selector)
        and (on.affinity is None or selector_matches(on.affinity, node.name, node.labels))
        and (
            on.tolerations is None
            or first_untolerated(node.spec.taints, on.tolerations, ("NoSchedule", "NoExecute")) is None
        )
    )


def terms_of(pod: PlacedPod, kind: TermKind) -> list[tuple[int, Any]]:
    if pod.affinity is None:
        return []
    wanted = pod.affinity.pod_anti_affinity if "anti" in kind.value else pod.affinity.pod_affinity
    if wanted is None:
        return []
    if "required" in kind.value:
        return [(0, term) for term in wanted.required]
    return [(each.weight, each.pod_affinity_term) for each in wanted.preferred]


def rows_of(state: State) -> dict[str, Any]:
    """What the state's rows show, read one by one, in the form of `Naive.rows`."""
    resources = set(state._table.requested) | set(state._table.allocatable)
    return {
        view.name: {
            "allocatable": {name: amount for name in resources if (amount := view.allocatable(name))},
            "requested": {name: amount for name in resources if (amount := view.requested(name))},
            "nonzero cpu": view.requested_nonzero("cpu"),
            "nonzero memory": view.requested_nonzero("memory"),
            "taints": view.taints,
            "unschedulable": view.is_unschedulable,
            "pods": {pod.uid: pod for pod in view.pods},
        }
        for view in state.nodes
    }


def without_zeros(rows: Mapping[str, Any]) -> dict[str, Any]:
    """A resource of 0 and one that is not named are the same."""
    return {
        name: {
            field: {key: amount for key, amount in value.items() if amount}
            if field in ("allocatable", "requested")
            else value
            for field, value in row.items()
        }
        for name, row in rows.items()
    }
