"""Clusters and workloads from manifests, defaulted and validated by the embedded API server, which is never started.

Deployments, ReplicaSets, ReplicationControllers, StatefulSets and Jobs become their pods: no controller runs in a
simulation. `mooring.dev/run-seconds` is how long a pod runs, as on the embedded cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.nesting import Decoder
from mooring.objects import Node, Pod
from mooring.simulated.cluster_file import ClusterFile
from mooring.simulated.records import RUN_SECONDS
from mooring.simulator.scenario import Arrival, Cluster, KindKey

Document = dict[str, Any]

REPLICAS: dict[KindKey, Callable[[Document], int]] = {
    ("apps/v1", "Deployment"): lambda spec: int(spec.get("replicas", 1)),
    ("apps/v1", "ReplicaSet"): lambda spec: int(spec.get("replicas", 1)),
    ("apps/v1", "StatefulSet"): lambda spec: int(spec.get("replicas", 1)),
    ("v1", "ReplicationController"): lambda spec: int(spec.get("replicas", 1)),
    ("batch/v1", "Job"): lambda spec: int(spec.get("completions") or spec.get("parallelism", 1)),
}
"""How many pods the spec of an owner wants."""
_NOT_SIMULATED = ("DaemonSet", "CronJob")
_READ_APART = ("Node", "Pod", "Event")
_pods, _nodes = Decoder(Pod), Decoder(Node)


def cluster_of(server: EmbeddedApiServer) -> Cluster:
    """What the server has now."""
    documents: dict[KindKey, list[Document]] = {}
    for row in server.registry.table:
        if "list" in row.verbs and row.kind not in _READ_APART:
            found = server.registry.store.list(row.storage)
            documents[row.api_version, row.kind] = [row.to_served(document) for document in found]
    nodes = [_nodes.decode(msgspec.json.encode(node)) for node in server.store.list("nodes")]
    pods = [_pods.decode(msgspec.json.encode(pod)) for pod in server.store.list("pods")]
    return Cluster(nodes, [pod for pod in pods if not _has_ended(pod)], documents=documents)


def add_workload(server: EmbeddedApiServer, text: str | bytes, source: str, *, now: float) -> list[Arrival]:
    """The pods of a file of manifests, all of which arrive at the beginning. Its other objects are created in the
    server. All mistakes are reported at once, each with its line."""
    file = ClusterFile(text, source, now=now)
    file.refuse(file.problems)
    initial = file.initial
    if initial.nodes or initial.restored:
        raise OperatorMistake(
            f"{source}: a workload has manifests of pods and their owners; nodes, and objects that an API server "
            "wrote, belong into the file of --cluster."
        )
    # Pods last: admission looks up the classes that they name.
    documents = sorted(initial.in_order(), key=lambda each: each["kind"] == "Pod" or _kind(each) in REPLICAS)
    file.refuse(
        [
            Problem(f'{each["kind"]} "{each["metadata"].get("name")}"', NO_CONTROLLER, file.line_of(each))
            for each in documents
            if each["kind"] in _NOT_SIMULATED
        ]
    )
    before = {_key(pod) for pod in server.store.list("pods")}
    # The server keeps an object that exists: the pod of the cluster would stand for that of the workload.
    file.refuse(
        [
            Problem(f'{each["kind"]} "{each["metadata"]["name"]}"', NAME_TAKEN, file.line_of(each))
            for each in documents
            if each["metadata"].get("name") and _first_pod(each) in before
        ]
    )
    file.refuse(server.load(documents, file.line_of))
    arrivals = [_arrival(pod) for pod in server.store.list("pods") if _key(pod) not in before]
    for document in documents:
        replicas = REPLICAS.get(_kind(document))
        if replicas is not None:
            arrivals += _pods_of(server, document, replicas, file)
    if not arrivals:
        raise OperatorMistake(f"{source} has no pods, and nothing that creates pods.")
    return arrivals


NAME_TAKEN = "the cluster has a pod of that name already, or one that it would create; choose another name"
NO_CONTROLLER = "is not simulated: no controller runs; write its pods as a Deployment or a Job"


def _pods_of(
    server: EmbeddedApiServer, document: Document, replicas: Callable[[Document], int], file: ClusterFile
) -> Iterator[Arrival]:
    """The pods that the owner's template makes: one is created in the server, the others are like it."""
    namespace, name = document["metadata"].get("namespace") or "default", document["metadata"]["name"]
    owner = _served(server, document["apiVersion"], document["kind"], namespace, name)
    count = replicas(owner["spec"])
    if not count:
        return
    template, first = owner["spec"]["template"], f"{name}-0"
    marks = {key: value for key, value in template.get("metadata", {}).items() if key in ("labels", "annotations")}
    metadata = {**marks, "name": first, "namespace": namespace, "ownerReferences": [_reference(owner)]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    file.refuse(server.load([pod], lambda _: file.line_of(document)))
    like = _arrival(_served(server, "v1", "Pod", namespace, first))
    for number in range(count):
        yield _renamed(like, f"{name}-{number}")


def _served(server: EmbeddedApiServer, api_version: str, kind: str, namespace: str, name: str) -> Document:
    """An object that the server has accepted."""
    row = server.registry.table.by_kind(api_version, kind)
    assert row is not None, f"{kind} is served"
    return row.to_served(server.registry.stored(row, namespace, name).document)


def _reference(owner: Document) -> Document:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def _arrival(document: Document) -> Arrival:
    pod: Pod = _pods.decode(msgspec.json.encode(document))
    return _renamed(Arrival(0.0, pod, _run_seconds(pod)), pod.name)


def _run_seconds(pod: Pod) -> float | None:
    text = pod.annotations.get(RUN_SECONDS)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise OperatorMistake(
            f'The annotation {RUN_SECONDS} of pod {pod.key} must be a number of seconds, got "{text}".'
        )
    return seconds


def _renamed(like: Arrival, name: str) -> Arrival:
    """The same pod under another name, with a uid that follows from it: simulations repeat."""
    metadata = like.pod.metadata
    uid = f"{metadata.namespace}/{name}"
    pod = Pod(
        metadata=msgspec.structs.replace(metadata, name=name, uid=uid), spec=like.pod.spec, status=like.pod.status
    )
    return Arrival(like.at, pod, like.duration)


def _first_pod(document: Document) -> tuple[str, str] | None:
    """Namespace and name of the first pod of an object; None: it makes none."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or "default"
    if document["kind"] == "Pod":
        return (namespace, metadata["name"])
    return (namespace, f"{metadata['name']}-0") if _kind(document) in REPLICAS else None


def _kind(document: Document) -> KindKey:
    return (document["apiVersion"], document["kind"])


def _key(document: Document) -> tuple[str, str]:
    return (document["metadata"].get("namespace", ""), document["metadata"]["name"])


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")
