"""One kind of pod from a manifest: a Pod, or an owner with a template, whatever its number of replicas.

The manifest may be of something that exists, also as `kubectl get -o yaml` prints it: what an API server wrote into it
is dropped, and the object of the same name in the cluster is disregarded.
"""

from __future__ import annotations

from pathlib import Path

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.missing_files import why_absent
from mooring.simulated.cluster_file import ClusterFile
from mooring.simulator.cluster_files import a_server, documents_of
from mooring.simulator.manifests import NO_CONTROLLER, REPLICAS, Document, arrival_of, kind_of, pod_of_owner, renamed
from mooring.simulator.scenario import Arrival, Cluster, Workload
from mooring.simulator.virtual_time import START

_SERVER_WRITTEN = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
POD = ("v1", "Pod")
MAKERS = (POD, *REPLICAS)


def read_pod_manifest(path: str | Path, cluster: Cluster, namespace: str | None = None) -> Workload:
    """The pod of a file, and the file's other objects. `namespace`: of objects that name none."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be read: {error.strerror}.{why_absent(str(path))}") from error
    return pod_manifest(text, str(path), cluster, namespace)


def pod_manifest(text: str | bytes, source: str, cluster: Cluster, namespace: str | None = None) -> Workload:
    """The pod, admitted with the classes and namespaces of the cluster. All mistakes are reported at once."""
    file = ClusterFile(text, source, now=START, most_nodes=0)
    file.refuse(file.problems)
    if file.initial.nodes:
        raise OperatorMistake(f"{source} has nodes; a pod, or an owner of pods, is wanted.")
    documents = [_as_written(each, namespace) for each in (*file.initial.in_order(), *file.initial.restored)]
    maker = _only_maker(documents, source)
    others = [each for each in documents if each is not maker]
    server = a_server()
    replaced = {_key(each) for each in documents}
    server.restore(
        [dict(each) for group in cluster.documents.values() for each in group if _key(dict(each)) not in replaced]
    )
    file.refuse(_placed(server.load(others), file) + _placed(server.load([maker]), file))
    arrival = arrival_of(server.store.list("pods")[0]) if kind_of(maker) == POD else pod_of_owner(server, maker, file)
    if arrival.pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in arrival.pod.spec.scheduling_gates)
        raise OperatorMistake(f"{source}: the pod has scheduling gates ({gates}), and waits until they are removed.")
    named = renamed(Arrival(0.0, arrival.pod), maker["metadata"].get("name") or arrival.pod.name)
    return Workload([named], documents_of(server))


def _only_maker(documents: list[Document], source: str) -> Document:
    """The one object that makes pods."""
    for each in documents:
        if each["kind"] in ("DaemonSet", "CronJob"):
            raise OperatorMistake(f'{source}: {each["kind"]} "{each["metadata"].get("name")}" {NO_CONTROLLER}.')
    makers = [each for each in documents if kind_of(each) in MAKERS]
    if len(makers) == 1:
        return makers[0]
    if not makers:
        raise OperatorMistake(f"{source} has no pod, and nothing that creates pods.")
    named = ", ".join(f'{each["kind"]} "{each["metadata"].get("name")}"' for each in makers[:5])
    raise OperatorMistake(f"{source} has {len(makers)} objects that make pods ({named}); one is wanted.")


def _as_written(document: Document, namespace: str | None) -> Document:
    """Without what an API server added; in this namespace, if it names none."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in _SERVER_WRITTEN}
    kept = {key: value for key, value in document.items() if key != "status"} | {"metadata": metadata}
    if namespace is not None and kind_of(document) in MAKERS:
        metadata.setdefault("namespace", namespace)
    if kind_of(document) == POD and isinstance(spec := document.get("spec"), dict):
        kept["spec"] = {key: value for key, value in spec.items() if key != "nodeName"}
    return kept


def _key(document: Document) -> tuple[str, str, str, str]:
    metadata = document["metadata"]
    return (*kind_of(document), metadata.get("namespace") or "default", metadata.get("name") or "")


def _placed(problems: list[Problem], file: ClusterFile) -> list[Problem]:
    """With the line of the object, where the file has only one."""
    documents = (*file.initial.in_order(), *file.initial.restored)
    line = file.line_of(documents[0]) if len(documents) == 1 else None
    return [Problem(each.path, each.message, each.line or line) for each in problems]
