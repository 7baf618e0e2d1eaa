"""The pods of a Deployment, a Job and the like, grouped by what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mooring.base.errors import OperatorMistake, did_you_mean
from mooring.framework import Pod
from mooring.simulator.scenario import Cluster, KindKey
from mooring.why.pending import Served, causes_of
from mooring.why.pods import recomputed
from mooring.why.recomputation import Recomputation

Owner = tuple[str, str]
"""Kind and name."""


def explain_owner(
    recomputation: Recomputation, kind: KindKey, namespace: str, name: str, served: Served = ()
) -> dict[str, Any]:
    """Ready for JSON: groups of pods, the largest first; pending ones before those that run."""
    pods = _pods_of(recomputation.cluster, kind, namespace, name)
    causes = causes_of(recomputation, [pod for pod in pods if not pod.spec.node_name], served)
    groups: dict[str, dict[str, Any]] = {}
    for pod in pods:
        cause = causes[pod.key].reason if pod.key in causes else pod.status.phase or "Bound"
        if (group := groups.get(cause)) is None:
            more = _explained(recomputation, pod, served) if pod.key in causes else {}
            group = groups[cause] = {"cause": cause, "isPending": pod.key in causes, "pods": [], **more}
        group["pods"].append(pod.name)
        if pod.spec.node_name:
            group["nodes"] = Counter({pod.spec.node_name: 1}) + group.get("nodes", Counter())
    ordered = sorted(groups.values(), key=lambda group: (not group["isPending"], -len(group["pods"])))
    for group in ordered:
        group["count"] = len(group["pods"])
        if "nodes" in group:
            group["nodes"] = dict(group["nodes"].most_common())
    return {"owner": f"{kind[1].lower()}/{name}", "namespace": namespace, "podCount": len(pods), "groups": ordered}


def _explained(recomputation: Recomputation, pod: Pod, served: Served) -> dict[str, Any]:
    """What is known of a pending pod beyond its cause."""
    found = recomputed(recomputation, pod, served=served)
    message = found.get("decision", {}).get("message")
    return ({"message": message} if message else {}) | ({"nearest": found["nearest"]} if "nearest" in found else {})


def _pods_of(cluster: Cluster, kind: KindKey, namespace: str, name: str) -> list[Pod]:
    between = _owners_between(cluster, namespace)
    owned: dict[Owner, list[Pod]] = {}
    for pod in cluster.pods:
        if pod.namespace != namespace:
            continue
        for reference in pod.metadata.owner_references:
            owner: Owner | None = (reference.kind, reference.name)
            while owner is not None:
                owned.setdefault(owner, []).append(pod)
                owner = between.get(owner)
    if found := owned.get((kind[1], name)):
        return found
    documents = [each["metadata"] for each in cluster.documents.get(kind, ())]
    named = {each["name"] for each in documents if each.get("namespace", "default") == namespace}
    if name in named:
        return []
    known = named | {other for of_kind, other in owned if of_kind == kind[1]}
    near = did_you_mean(name, known) or near_namespace(namespace, (pod.namespace for pod in cluster.pods))
    raise OperatorMistake(f'there is no {kind[1]} "{name}" in namespace "{namespace}".{near}')


def near_namespace(namespace: str, known: Iterable[str]) -> str:
    """` There is no such namespace. Did you mean "shop"?`, if that is so."""
    namespaces = set(known)
    near = "" if namespace in namespaces else did_you_mean(namespace, namespaces)
    return f" There is no such namespace.{near}" if near else ""


def _owners_between(cluster: Cluster, namespace: str) -> dict[Owner, Owner]:
    """ReplicaSet → Deployment, Job → CronJob."""
    found: dict[Owner, Owner] = {}
    for kind in (("apps/v1", "ReplicaSet"), ("batch/v1", "Job")):
        for document in cluster.documents.get(kind, ()):
            metadata = document["metadata"]
            for reference in metadata.get("ownerReferences") or ():
                if metadata.get("namespace", "default") == namespace and reference.get("controller"):
                    found[kind[1], metadata["name"]] = (reference["kind"], reference["name"])
    return found
