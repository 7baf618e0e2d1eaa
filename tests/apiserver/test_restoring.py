"""Objects of another API server: restored as they are, rejected by name, or left out with a warning."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.options import DeleteOptions
from mooring.apiserver.restoring import Restored
from mooring.apiserver.status import StatusError

Document = dict[str, Any]
CREATED = "2020-01-02T03:04:05Z"


def an_object(kind: str, name: str, version: str = "v1", **fields: Any) -> Document:
    """As a server prints it."""
    metadata = {
        "name": name,
        "uid": f"uid-of-{name}",
        "resourceVersion": "4711",
        "creationTimestamp": CREATED,
        "managedFields": [{"manager": "kubectl"}],
        **fields.pop("metadata", {}),
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def a_pod(name: str, *, owner: str = "", status: Document | None = None, **spec: Any) -> Document:
    owners = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-of-{owner}", "controller": True}
    ]
    return an_object(
        "Pod",
        name,
        metadata={"namespace": "shop", "labels": {"app": "web"}} | ({"ownerReferences": owners} if owner else {}),
        spec={"containers": [{"name": "c", "image": "nginx"}], **spec},
        status={"phase": "Running", "podIP": "10.1.2.3"} if status is None else status,
    )


@pytest.fixture
def server() -> EmbeddedApiServer:
    return EmbeddedApiServer()


def restored(server: EmbeddedApiServer, *documents: Document) -> Restored:
    result = server.restore(documents)
    server.controllers.sync()
    return result


def test_a_pod_keeps_its_identity_its_node_and_its_status(server: EmbeddedApiServer):
    result = restored(
        server, a_pod("web", nodeName="far", priority=7, priorityClassName="gone", serviceAccountName="gone")
    )
    assert (result.problems, result.objects, list(result.sentences())) == ([], 1, [])
    pod = server.store.get("pods", "web", "shop")
    assert pod is not None
    assert (pod["metadata"]["uid"], pod["metadata"]["creationTimestamp"]) == ("uid-of-web", CREATED)
    assert (pod["spec"]["nodeName"], pod["spec"]["priority"]) == ("far", 7)
    assert (pod["status"]["phase"], pod["status"]["podIP"]) == ("Running", "10.1.2.3")
    assert pod["metadata"]["resourceVersion"] != "4711"
    assert "managedFields" not in pod["metadata"]
    assert server.store.get("namespaces", "shop", "") is not None
    assert server.store.get("serviceaccounts", "default", "shop") is not None


def test_what_admission_added_is_not_added_twice(server: EmbeddedApiServer):
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}],
    }
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["app"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    restored(server, a_pod("web", affinity=affinity))
    pod = server.store.get("pods", "web", "shop")
    assert pod is not None
    assert pod["spec"]["affinity"] == affinity


def test_an_object_whose_owner_is_not_in_the_dump_stays_until_it_is_deleted(server: EmbeddedApiServer):
    owned = an_object("ReplicaSet", "rs", "apps/v1", metadata={"namespace": "shop"}, spec=_rs_spec())
    restored(server, a_pod("lost", owner="gone"), a_pod("kept", owner="rs"), owned)
    assert {pod["metadata"]["name"] for pod in server.store.list("pods")} == {"lost", "kept"}

    delete(server, "replicasets", "rs", "apps")
    assert [pod["metadata"]["name"] for pod in server.store.list("pods")] == ["lost"]
    delete(server, "pods", "lost")
    assert server.store.list("pods") == []


def test_an_owner_that_never_existed_is_still_collected_for_objects_that_are_created(server: EmbeddedApiServer):
    restored(server, a_pod("lost", owner="gone"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "never"}
    server.store.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "ownerReferences": [owner]}}
    )
    server.controllers.sync()
    assert server.store.get("configmaps", "m") is None


def test_a_dump_in_any_order(server: EmbeddedApiServer):
    definition = an_object(
        "CustomResourceDefinition",
        "racks.example.com",
        "apiextensions.k8s.io/v1",
        spec={
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "racks", "kind": "Rack"},
            "versions": [_version()],
        },
        status={"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    )
    rack = an_object(
        "Rack", "r1", "example.com/v1", metadata={"namespace": "shop"}, spec={"height": 42}, status={"used": 7}
    )
    namespace = an_object("Namespace", "shop", metadata={"labels": {"team": "green"}})
    result = restored(server, rack, definition, namespace)
    assert (result.problems, result.objects) == ([], 3)
    found = server.store.get("racks.example.com", "r1", "shop")
    assert found is not None
    assert (found["spec"], found["status"]) == ({"height": 42}, {"used": 7})
    shop = server.store.get("namespaces", "shop", "")
    assert shop is not None
    assert shop["metadata"]["labels"]["team"] == "green"


def test_what_every_cluster_has_is_replaced(server: EmbeddedApiServer):
    default = an_object("Namespace", "default", metadata={"labels": {"team": "green"}}, status={"phase": "Active"})
    spec = {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 443}]}
    service = an_object("Service", "kubernetes", metadata={"namespace": "default"}, spec=spec)
    critical = an_object("PriorityClass", "system-node-critical", "scheduling.k8s.io/v1", value=2_000_001_000)
    assert restored(server, service, default, critical).problems == []
    found = server.store.get("namespaces", "default", "")
    assert found is not None
    assert (found["metadata"]["uid"], found["metadata"]["labels"]["team"]) == ("uid-of-default", "green")
    kubernetes = server.store.get("services", "kubernetes")
    assert kubernetes is not None
    assert kubernetes["spec"]["clusterIP"] == "10.0.0.1"


def test_a_namespace_of_a_cluster_wide_object_is_dropped(server: EmbeddedApiServer):
    role = an_object("ClusterRole", "r", "rbac.authorization.k8s.io/v1", metadata={"namespace": "shop"}, rules=[])
    assert restored(server, role).problems == []
    created = server.store.create(a_manifest := {**role, "metadata": {"name": "s", "namespace": "shop"}})
    assert "namespace" not in created["metadata"]
    assert a_manifest["metadata"]["namespace"] == "shop"


def test_kinds_that_are_not_served_and_unknown_fields_are_counted(server: EmbeddedApiServer):
    service = "apiregistration.k8s.io/v1"
    result = restored(
        server,
        an_object("APIService", "a", service),
        an_object("APIService", "b", service),
        an_object("Node", "n", spec={"futureField": 1}),
        an_object("Node", "m", spec={"futureField": 1}),
        an_object("TokenReview", "t", "authentication.k8s.io/v1"),
    )
    left_out, dropped = result.sentences()
    assert left_out == (
        "Left out, because the embedded API server does not serve their kind: apiregistration.k8s.io/v1 APIService (2)"
        ", authentication.k8s.io/v1 TokenReview (1)."
    )
    assert dropped == "Dropped fields that Kubernetes v1.36 does not have: Node spec.futureField (2)."
    assert result.problems == []


INVALID = {
    "no containers": (a_pod("web", containers=[]), 'Pod "shop/web"', "spec.containers: Required value"),
    "a name that is not allowed": (an_object("Node", "Big_One"), 'Node "Big_One"', "metadata.name: Invalid value"),
    "a number that is too large": (
        an_object("PriorityClass", "p", "scheduling.k8s.io/v1", value=2_000_000_000),
        'PriorityClass "p"',
        "maximum allowed value",
    ),
    "a required field that is absent": (
        an_object("VolumeAttachment", "a", "storage.k8s.io/v1", spec={"attacher": "csi", "source": {}}),
        'VolumeAttachment "a"',
        "spec.nodeName: Required value",
    ),
}
READABLE = an_object("Node", "other")
UNREADABLE = {
    "an impossible quantity": (a_pod("web", overhead={"cpu": "lots"}), 'Pod "shop/web"', "quantities must match"),
    "a wrong type": (an_object("ConfigMap", "m", data={"a": 1}), 'ConfigMap "default/m"', "cannot unmarshal number"),
    "no name": (an_object("Node", ""), 'Node ""', "metadata.name: Required value"),
    "a definition without names": (
        an_object("CustomResourceDefinition", "racks.example.com", "apiextensions.k8s.io/v1", spec={"versions": []}),
        'CustomResourceDefinition "racks.example.com"',
        "spec.names.kind: Required value",
    ),
    "a definition without a version": (
        an_object(
            "CustomResourceDefinition",
            "racks.example.com",
            "apiextensions.k8s.io/v1",
            spec={
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "racks", "kind": "Rack"},
                "versions": [],
            },
        ),
        'CustomResourceDefinition "racks.example.com"',
        "exactly one version marked as storage version",
    ),
}


@pytest.mark.parametrize(("document", "path", "message"), INVALID.values(), ids=INVALID.keys())
def test_what_another_server_accepted_is_restored_and_named(
    server: EmbeddedApiServer, document: Document, path: str, message: str
):
    result = restored(server, document)
    assert (result.problems, result.objects) == ([], 1)
    [sentence] = result.sentences()
    assert sentence.startswith(f"Kept as it is, though Kubernetes v1.36 would refuse to create it: {path}: ")
    assert message in sentence


@pytest.mark.parametrize("absent", ["uid", "creationTimestamp"])
@pytest.mark.parametrize(("document", "path", "message"), INVALID.values(), ids=INVALID.keys())
def test_what_is_invalid_and_no_server_returned_is_refused(
    server: EmbeddedApiServer, document: Document, path: str, message: str, absent: str
):
    metadata = {key: value for key, value in document["metadata"].items() if key != absent}
    [problem] = restored(server, {**document, "metadata": metadata}).problems
    assert problem.path == path
    assert message in problem.message


def test_of_many_unusual_objects_three_are_named(server: EmbeddedApiServer):
    [sentence] = restored(server, *(an_object("Node", f"Node_{number}") for number in range(5))).sentences()
    assert [f"Node_{number}" in sentence for number in range(5)] == [True, True, True, False, False]
    assert sentence.endswith("; and 2 more.")


@pytest.mark.parametrize(("document", "path", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_refused_by_name_and_the_others_are_looked_at(
    server: EmbeddedApiServer, document: Document, path: str, message: str
):
    result = restored(server, document, READABLE, an_object("Node", "wrong", spec={"taints": "none"}))
    assert [problem.path for problem in result.problems] == [path, 'Node "wrong"']
    assert message in result.problems[0].message
    assert result.objects == 1


def test_an_update_is_not_refused_for_what_was_restored(server: EmbeddedApiServer):
    name = "Node_1"
    restored(server, an_object("Node", name, status={"capacity": {"cpu": "-1"}}))
    row = server.registry.table.find("", "v1", "nodes")
    assert row is not None

    def labelled(node: Document) -> Document:
        return {**node, "metadata": {**node["metadata"], "labels": {"a": "b"}}}

    def wrong(node: Document) -> Document:
        return {**node, "metadata": {**node["metadata"], "labels": {"a": "?"}}}

    server.registry.update(row, "", name, labelled)
    with pytest.raises(StatusError, match="labels: Invalid value") as refused:
        server.registry.update(row, "", name, wrong)
    assert "capacity" not in refused.value.message


@pytest.mark.parametrize(
    ("version", "kind", "field"), [("storage.k8s.io/v1", "CSINode", "drivers"), ("v1", "LimitRange", "limits")]
)
def test_a_list_that_go_writes_as_null_is_accepted_of_clients(
    server: EmbeddedApiServer, version: str, kind: str, field: str
):
    assert server.load([{"apiVersion": version, "kind": kind, "metadata": {"name": "n"}, "spec": {field: None}}]) == []
    [problem] = server.load([{"apiVersion": version, "kind": kind, "metadata": {"name": "m"}, "spec": {field: [{}]}}])
    assert f"spec.{field}[0]" in problem.message


def test_a_column_that_is_not_supported_here_is_empty(server: EmbeddedApiServer):
    version = {**_version(), "additionalPrinterColumns": [{"name": "Odd", "type": "string", "jsonPath": ".a =~ /b/"}]}
    spec = {"group": "example.com", "scope": "Cluster", "names": {"plural": "racks", "kind": "Rack"}}
    restored(
        server,
        an_object(
            "CustomResourceDefinition",
            "racks.example.com",
            "apiextensions.k8s.io/v1",
            spec={**spec, "versions": [version]},
        ),
    )
    row = server.registry.table.find("example.com", "v1", "racks")
    assert row is not None
    assert row.custom is not None
    assert [column.name for column in row.custom.columns] == ["Name", "Odd"]
    assert row.custom.columns[1].read({"metadata": {"name": "r"}}, 0.0) is None


def test_a_deployment_gets_the_replica_set_that_its_pods_name(server: EmbeddedApiServer):
    spec = _rs_spec() | {"replicas": 2}
    deployment = an_object("Deployment", "web", "apps/v1", metadata={"namespace": "shop"}, spec=spec)
    pods = [a_pod("a", owner="web-1"), a_pod("b", owner="web-1")]
    for pod in pods:
        pod["metadata"]["labels"]["pod-template-hash"] = "1"
    assert restored(server, *pods, deployment).problems == []
    [found] = server.store.list("replicasets.apps")
    assert (found["metadata"]["name"], found["metadata"]["uid"]) == ("web-1", "uid-of-web-1")
    assert found["metadata"]["ownerReferences"][0]["uid"] == "uid-of-web"
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": "1"}}


def _rs_spec() -> Document:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    return {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}


def _version() -> Document:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}


def delete(server: EmbeddedApiServer, plural: str, name: str, group: str = "") -> None:
    row = server.registry.table.find(group, "v1", plural)
    assert row is not None
    server.registry.delete(row, "shop", name, DeleteOptions(grace_seconds=0, propagation="Background"))
    server.controllers.sync()
