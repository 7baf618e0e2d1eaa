"""Objects of a file, created before the server starts."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver import EmbeddedApiServer


def an_object(api_version: str, kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | more.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def a_pod(name: str, namespace: str = "", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "app", "image": "nginx:1.27"}]
    return an_object("v1", "Pod", name, namespace, spec={"containers": containers, **spec})


@pytest.fixture
async def server() -> EmbeddedApiServer:
    return EmbeddedApiServer()


async def test_objects_are_created_in_order_and_missing_namespaces_are_made(server: EmbeddedApiServer):
    urgent = an_object("scheduling.k8s.io/v1", "PriorityClass", "urgent", value=7)
    assert server.load([urgent, a_pod("web", "shop", priorityClassName="urgent")]) == []
    pod = server.store.get("pods", "web", "shop")
    assert pod is not None
    assert pod["spec"]["priority"] == 7
    assert server.store.get("serviceaccounts", "default", "shop") is not None


async def test_a_name_is_generated_once(server: EmbeddedApiServer):
    pod = a_pod("web")
    pod["metadata"] = {"generateName": "web-"}
    assert server.load([pod]) == []
    [made] = server.store.list("pods")
    assert made["metadata"]["name"].startswith("web-")
    assert pod["metadata"] == {"generateName": "web-"}


async def test_what_exists_stays_but_a_namespace_takes_its_marks(server: EmbeddedApiServer):
    default = an_object("v1", "Namespace", "default", metadata={"labels": {"team": "a"}, "annotations": {"n": "1"}})
    service = an_object("v1", "Service", "kubernetes", "default", spec={"ports": [{"port": 9}]})
    assert server.load([default, service]) == []
    namespace = server.store.get("namespaces", "default")
    assert namespace is not None
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default", "team": "a"}
    assert namespace["metadata"]["annotations"] == {"n": "1"}
    kept = server.store.get("services", "kubernetes", "default")
    assert kept is not None
    assert kept["spec"]["ports"][0]["port"] == 443


async def test_all_that_is_wrong_is_named_and_the_rest_is_there(server: EmbeddedApiServer):
    documents = [
        an_object("v1", "Node", "off_X"),
        a_pod("right"),
        a_pod("wrong", nodename="a", priorityClassName="none"),
        an_object("cilium.io/v2", "CiliumNode", "one"),
        an_object("authorization.k8s.io/v1", "SubjectAccessReview", "review"),
    ]
    problems = server.load(documents, documents.index)
    assert [(problem.path, problem.line) for problem in problems] == [
        ('Node "off_X"', 0),
        ('Pod "default/wrong"', 2),
        ('Pod "default/wrong"', 2),
        ('CiliumNode "one"', 3),
        ('SubjectAccessReview "review"', 4),
    ]
    assert problems[1].message == 'unknown field "spec.nodename"'
    assert "no PriorityClass with name none was found" in problems[2].message
    assert [pod["metadata"]["name"] for pod in server.store.list("pods")] == ["right"]
