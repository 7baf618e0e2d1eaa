"""The pods of an owner, grouped by cause."""

from __future__ import annotations

from typing import Any

import pytest
from tests.why.clusters import owned

from mooring.base.errors import OperatorMistake
from mooring.config import default_configuration
from mooring.framework import Pod
from mooring.plugins.catalogue import catalogue
from mooring.simulator import Cluster
from mooring.testing import a_node_object, a_pod
from mooring.why import Recomputation, explain_owner
from mooring.why.owners import near_namespace

DEPLOYMENT, REPLICA_SET = ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet")


def explained(pods: list[Pod], kind: tuple[str, str], name: str, namespace: str = "default") -> dict[str, Any]:
    references = [{"kind": "Deployment", "name": "web", "controller": True}]
    documents: dict[tuple[str, str], list[dict[str, Any]]] = {
        DEPLOYMENT: [{"metadata": {"name": "web", "namespace": "default"}}, {"metadata": {"name": "idle"}}],
        REPLICA_SET: [{"metadata": {"name": "web-5d", "namespace": "default", "ownerReferences": references}}],
    }
    registry = catalogue()
    cluster = Cluster([a_node_object("one", cpu="4")], pods, documents=documents)
    with Recomputation(cluster, default_configuration(registry), registry) as recomputation:
        return explain_owner(recomputation, kind, namespace, name)


PODS = [
    owned(a_pod("web-5d-a", cpu="2", node="one"), "ReplicaSet", "web-5d"),
    owned(a_pod("web-5d-b", cpu="3"), "ReplicaSet", "web-5d"),
    owned(a_pod("web-5d-c", cpu="3"), "ReplicaSet", "web-5d"),
    owned(a_pod("web-5d-d", cpu="1", gates=["later"]), "ReplicaSet", "web-5d"),
    owned(a_pod("other", cpu="3"), "Job", "nightly"),
    a_pod("alone", cpu="3"),
]


@pytest.mark.parametrize(("kind", "name"), [(DEPLOYMENT, "web"), (REPLICA_SET, "web-5d")])
def test_pods_are_grouped_by_cause_pending_ones_first(kind: tuple[str, str], name: str):
    found = explained(PODS, kind, name)
    assert [(group["cause"], group["pods"]) for group in found["groups"]] == [
        ("the only node has too little cpu", ["web-5d-b", "web-5d-c"]),
        ("SchedulingGates keeps it out of the queue: waiting for scheduling gates: [later]", ["web-5d-d"]),
        ("Running", ["web-5d-a"]),
    ]
    assert found["podCount"] == 4
    assert found["groups"][0]["nearest"][0]["missing"] == ["lacks 1 cpu"]
    assert found["groups"][2]["nodes"] == {"one": 1}


def test_a_job_whose_object_is_not_known_is_found_by_its_pods():
    assert explained(PODS, ("batch/v1", "Job"), "nightly")["podCount"] == 1


def test_an_owner_without_pods():
    assert explained(PODS, DEPLOYMENT, "idle")["groups"] == []


@pytest.mark.parametrize(
    ("name", "namespace", "guess"), [("wep", "default", ' Did you mean "web"?'), ("web", "shop", "")]
)
def test_an_unknown_owner_is_a_mistake_with_the_nearest_name(name: str, namespace: str, guess: str):
    with pytest.raises(OperatorMistake) as mistake:
        explained(PODS, DEPLOYMENT, name, namespace)
    assert str(mistake.value) == f'there is no Deployment "{name}" in namespace "{namespace}".{guess}'


NAMESPACES = {
    "a name that is near": ("shpo", ' There is no such namespace. Did you mean "shop"?'),
    "a namespace that exists": ("shop", ""),
    "nothing is near": ("kube-system", ""),
}


@pytest.mark.parametrize(("namespace", "text"), NAMESPACES.values(), ids=NAMESPACES.keys())
def test_a_namespace_that_is_misspelt_is_named(namespace: str, text: str):
    assert near_namespace(namespace, ["shop", "default", "shop"]) == text
