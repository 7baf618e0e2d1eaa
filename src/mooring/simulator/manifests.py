"""Workloads from manifests, defaulted and validated by the embedded API server, which is never started.

Deployments, ReplicaSets, ReplicationControllers, StatefulSets and Jobs become their pods: no controller runs in a
simulation. `mooring.dev/run-seconds` is how long a pod runs, as on the embedded cluster. A file may have
GeneratedWorkloads as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.memory import refuse_without_memory
from mooring.base.nesting import Decoder
from mooring.objects import Pod
from mooring.simulated.cluster_file import GENERATED_WORKLOAD, ClusterFile
from mooring.simulated.controllers.stateful_claims import claim_documents, volumes_of
from mooring.simulated.controllers.workload_records import StatefulSet
from mooring.simulated.records import RUN_SECONDS
from mooring.simulator.cluster_files import a_server, documents_of
from mooring.simulator.generated_workload import MOST_PODS, POD_BYTES, rows_in
from mooring.simulator.scenario import Arrival, Cluster, KindKey, Workload
from mooring.simulator.trace_rows import TraceRow, arrivals_of
from mooring.simulator.virtual_time import START

Document = dict[str, Any]

REPLICAS: dict[KindKey, Callable[[Document], int]] = {
    ("apps/v1", "Deployment"): lambda spec: int(spec.get("replicas", 1)),
    ("apps/v1", "ReplicaSet"): lambda spec: int(spec.get("replicas", 1)),
    ("apps/v1", "StatefulSet"): lambda spec: int(spec.get("replicas", 1)),
    ("v1", "ReplicationController"): lambda spec: int(spec.get("replicas", 1)),
    ("batch/v1", "Job"): lambda spec: int(spec.get("completions") or spec.get("parallelism", 1)),
}
"""How many pods the spec of an owner wants."""
_ROWS_BETWEEN = 1_000
"""Generated rows between two looks at the limits."""
_NOT_SIMULATED = ("DaemonSet", "CronJob")
_pods = Decoder(Pod)


def manifest_workload(
    text: str | bytes, source: str, cluster: Cluster, *, most: int = MOST_PODS, until: float = math.inf
) -> Workload:
    """The pods of a file of manifests, all of which arrive at the beginning, with the file's other objects; and those
    of its GeneratedWorkloads.

    They are admitted with the classes and namespaces of the cluster. All mistakes are reported at once, each with its
    line. `most` pods and claims are made; a file that wants more is refused before they are, and one that is not read
    `until` then (of `time.monotonic`) is given up.
    """
    limits = _Limits(source, most, until)
    server = a_server()
    server.restore([dict(document) for documents in cluster.documents.values() for document in documents])
    arrivals = _arrivals(server, text, limits, {(pod.namespace, pod.name) for pod in cluster.pods})
    return Workload(arrivals, documents_of(server))


class TooManyPods(OperatorMistake):
    """A file wants more pods than are made."""


@dataclass(frozen=True)
class _Limits:
    """A replica count of ten digits takes a line to write, and the memory of the machine to carry out."""

    source: str
    pods: int
    until: float

    def check_time(self) -> None:
        if time.monotonic() > self.until:
            raise OperatorMistake(f"{self.source} takes too long to read; leave out what need not be tried.")

    def check_number(self, wanted: Mapping[str, int]) -> None:
        """By what wants them."""
        total = sum(wanted.values())
        if total > self.pods:
            largest = max(wanted, key=lambda each: wanted[each])
            raise TooManyPods(
                f"{self.source} has {total:,} pods and claims, {wanted[largest]:,} of them by {largest}; at most "
                f"{self.pods:,} can be tried at once."
            )
        refuse_without_memory("pods and claims", total, POD_BYTES)


def _arrivals(
    server: EmbeddedApiServer, text: str | bytes, limits: _Limits, taken: set[tuple[str, str]]
) -> list[Arrival]:
    source = limits.source
    file = ClusterFile(text, source, now=START, most_nodes=0)
    file.refuse(file.problems)
    initial = file.initial
    if initial.nodes or initial.restored:
        raise OperatorMistake(
            f"{source}: a workload has manifests of pods and their owners; nodes, and objects that an API server "
            "wrote, belong into the file of --cluster."
        )
    limits.check_time()
    generated = arrivals_of(_counted(rows_in(file, most=limits.pods), limits))
    # Pods last: admission looks up the classes that they name.
    documents = sorted(initial.in_order(), key=lambda each: each["kind"] == "Pod" or kind_of(each) in REPLICAS)
    file.refuse(
        [
            Problem(f'{each["kind"]} "{each["metadata"].get("name")}"', NO_CONTROLLER, file.line_of(each))
            for each in documents
            if each["kind"] in _NOT_SIMULATED
        ]
    )
    file.refuse(
        [
            Problem(f'{each["kind"]} "{each["metadata"]["name"]}"', NAME_TAKEN, file.line_of(each))
            for each in documents
            if each["metadata"].get("name") and _first_pod(each) in taken
        ]
    )
    file.refuse(server.load(documents, file.line_of))
    limits.check_time()
    owners = [document for document in documents if kind_of(document) in REPLICAS]
    wanted = {_shown(each): _wanted(server, each) for each in owners}
    limits.check_number({"Pods": len(server.store.list("pods")), GENERATED_WORKLOAD: len(generated)} | wanted)
    arrivals = [arrival_of(pod) for pod in server.store.list("pods")]
    for document in owners:
        for arrival in _pods_of(server, document, file):
            arrivals.append(arrival)
            limits.check_time()
    arrivals += generated
    if not arrivals:
        raise OperatorMistake(f"{source} has no pods, and nothing that creates pods.")
    return arrivals


NAME_TAKEN = "the cluster has a pod of that name already, or one that it would create; choose another name"
NO_CONTROLLER = "is not simulated: no controller runs; write its pods as a Deployment or a Job"


def _counted(rows: Iterable[TraceRow], limits: _Limits) -> Iterator[TraceRow]:
    for number, row in enumerate(rows, start=1):
        if not number % _ROWS_BETWEEN:
            limits.check_time()
            limits.check_number({GENERATED_WORKLOAD: number})
        yield row


def _wanted(server: EmbeddedApiServer, document: Document) -> int:
    """How many pods an owner makes, and claims with them."""
    owner = _owner(server, document)
    each = 1 + len(owner["spec"].get("volumeClaimTemplates") or ())
    return each * REPLICAS[kind_of(document)](owner["spec"])


def _pods_of(server: EmbeddedApiServer, document: Document, file: ClusterFile) -> Iterator[Arrival]:
    """The pods that the owner's template makes: one is created in the server, the others are like it."""
    name, owner = document["metadata"]["name"], _owner(server, document)
    count = REPLICAS[kind_of(document)](owner["spec"])
    namespace = owner["metadata"]["namespace"]
    if owner["spec"].get("volumeClaimTemplates"):
        for pod in _with_claims(server, owner, namespace):
            yield _created(server, pod, document, file)
    elif count:
        like = pod_of_owner(server, document, file)
        yield from (renamed(like, f"{name}-{number}") for number in range(count))


def pod_of_owner(server: EmbeddedApiServer, document: Document, file: ClusterFile) -> Arrival:
    """The first pod of an owner that the server has, created there; without the claims of a StatefulSet."""
    owner = _owner(server, document)
    metadata = owner["metadata"]
    return _created(server, _pod_of(owner, metadata["namespace"], f"{metadata['name']}-0"), document, file)


def _created(server: EmbeddedApiServer, pod: Document, document: Document, file: ClusterFile) -> Arrival:
    file.refuse(server.load([pod], lambda _: file.line_of(document)))
    return arrival_of(_served(server, "v1", "Pod", pod["metadata"]["namespace"], pod["metadata"]["name"]))


def _owner(server: EmbeddedApiServer, document: Document) -> Document:
    namespace, name = document["metadata"].get("namespace") or "default", document["metadata"]["name"]
    return _served(server, document["apiVersion"], document["kind"], namespace, name)


def _pod_of(owner: Document, namespace: str, name: str) -> Document:
    template = owner["spec"]["template"]
    marks = {key: value for key, value in template.get("metadata", {}).items() if key in ("labels", "annotations")}
    metadata = {**marks, "name": name, "namespace": namespace, "ownerReferences": [_reference(owner)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _with_claims(server: EmbeddedApiServer, owner: Document, namespace: str) -> Iterator[Document]:
    """The pods of a StatefulSet, each with claims of its own, which are created here."""
    record = msgspec.convert(owner, StatefulSet, strict=False)
    for ordinal in record.ordinals:
        for claim in claim_documents(record, ordinal):
            claim["metadata"]["namespace"] = namespace
            server.load([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}])
        pod = _pod_of(owner, namespace, f"{record.name}-{ordinal}")
        volumes = volumes_of(record, ordinal, pod["spec"].get("volumes", ()))
        yield pod | {"spec": {**pod["spec"], "volumes": volumes}}


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


def arrival_of(document: Document) -> Arrival:
    pod: Pod = _pods.decode(msgspec.json.encode(document))
    return renamed(Arrival(0.0, pod, _run_seconds(pod)), pod.name)


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


def renamed(like: Arrival, name: str) -> Arrival:
    """The same pod under another name, with a uid that follows from it: simulations repeat."""
    metadata = like.pod.metadata
    uid = f"{metadata.namespace}/{name}"
    pod = Pod(
        metadata=msgspec.structs.replace(metadata, name=name, uid=uid), spec=like.pod.spec, status=like.pod.status
    )
    return Arrival(like.at, pod, like.duration)


def _shown(document: Document) -> str:
    metadata = document["metadata"]
    return f'{document["kind"]} "{metadata.get("namespace") or "default"}/{metadata["name"]}"'


def _first_pod(document: Document) -> tuple[str, str] | None:
    """Namespace and name of the first pod of an object; None: it makes none."""
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or "default"
    if document["kind"] == "Pod":
        return (namespace, metadata["name"])
    return (namespace, f"{metadata['name']}-0") if kind_of(document) in REPLICAS else None


def kind_of(document: Document) -> KindKey:
    return (document["apiVersion"], document["kind"])
