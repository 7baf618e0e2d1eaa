"""Clusters from files: read, defaulted and validated by an embedded API server that is never started."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.apiserver import EmbeddedApiServer
from mooring.base.clock import ManualClock
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.nesting import Decoder
from mooring.framework.gate_table import POD_GROUP_DEPENDENCIES
from mooring.objects import Node, Pod
from mooring.simulated.cluster_file import plain_nodes, shown
from mooring.simulated.document_fields import Mistake
from mooring.simulated.generated_cluster import generated_nodes
from mooring.simulated.kubelet.node_registration import node_document
from mooring.simulated.loading import fill, with_default_storage
from mooring.simulator.scenario import Cluster, KindKey
from mooring.simulator.virtual_time import START

_READ_APART = ("Node", "Pod", "Event")
_pods, _nodes = Decoder(Pod), Decoder(Node)


def read_cluster(path: str) -> Cluster:
    """A cluster file or a snapshot."""
    server = a_server()
    notes = fill(server, path, now=START)
    return cluster_of(server, notes)


def plain_cluster(nodes: int) -> Cluster:
    """`node-1` to `node-N`."""
    return cluster_with(node_document(f"node-{index + 1}", ordinal=index, now=START) for index in range(nodes))


def generated_cluster(**fields: Any) -> Cluster:
    """The nodes of a GeneratedCluster with these fields, where they are not None."""
    mistakes: list[Mistake] = []
    document = {name: value for name, value in fields.items() if value is not None}
    nodes = generated_nodes(document, mistakes, now=START)
    if mistakes:
        raise OperatorMistake.found_in("The generated cluster", [Problem(shown(path), why) for path, why in mistakes])
    return cluster_with(nodes)


def cluster_with(nodes: Iterable[dict[str, Any]]) -> Cluster:
    """These nodes, and what every embedded cluster has."""
    server = a_server()
    server.load(with_default_storage(plain_nodes(0, now=START)).in_order())
    # Not by way of the server, which would keep the whole document of each.
    return Cluster([_node_of(document) for document in nodes], documents=documents_of(server))


def _node_of(document: dict[str, Any]) -> Node:
    document["metadata"] |= {"uid": document["metadata"]["name"], "resourceVersion": "1"}
    node: Node = _nodes.decode(msgspec.json.encode(document))
    return node


def a_server() -> EmbeddedApiServer:
    """One that defaults, admits and validates, and is never started.

    It takes pod groups with any gates: what a scheduler makes of them depends on the scheduler's own.
    """
    return EmbeddedApiServer(clock=ManualClock(START), features=POD_GROUP_DEPENDENCIES)


def cluster_of(server: EmbeddedApiServer, notes: list[str] | None = None) -> Cluster:
    """What the server has now."""
    nodes = [_nodes.decode(msgspec.json.encode(node)) for node in server.store.list("nodes")]
    pods = [_pods.decode(msgspec.json.encode(pod)) for pod in server.store.list("pods")]
    return Cluster(
        nodes, [pod for pod in pods if not _has_ended(pod)], documents=documents_of(server), notes=notes or []
    )


def documents_of(server: EmbeddedApiServer) -> dict[KindKey, list[dict[str, Any]]]:
    """All objects but nodes, pods and events."""
    documents = {}
    for row in server.registry.table:
        if "list" in row.verbs and row.kind not in _READ_APART:
            found = server.registry.store.list(row.storage)
            documents[row.api_version, row.kind] = [row.to_served(document) for document in found]
    return documents


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")
