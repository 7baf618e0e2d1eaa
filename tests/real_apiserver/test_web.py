"""The page on a real API server: users sign in with their tokens; its RBAC decides what they see and do."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.cli.programs import Program
from tests.ports import free_ports
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.control_plane import ADMIN, POWERLESS, ApiError
from tests.scheduler.serving.certificates import an_authority

RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class ServedPage:
    """Requests of users, each with the token that the API server knows."""

    port: int

    def send(self, user: str, path: str, method: str = "GET", body: Any = None) -> tuple[int, Any]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=60)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer token-of-{user}"} if user else {})
        try:
            connection.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


def started(cluster: Cluster, *flags: str) -> tuple[ServedPage, Program]:
    certificate, key = an_authority("page").issue("page", hosts=["localhost"]).write(cluster.home, "page")
    (port,) = free_ports(1)
    files = (f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}")
    program = cluster.page("--bind=0.0.0.0", f"--port={port}", *files, *flags)
    program.mentions(f":{port}")
    return ServedPage(port), program


@pytest.fixture
def shop(cluster: Cluster) -> Iterator[None]:
    """A namespace whose pods the powerless user may list, and nodes."""
    with contextlib.suppress(ApiError):  # no controller deletes it: it is there from the test before
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    subjects = [{"kind": "User", "name": "powerless", "apiGroup": GROUP}]
    lists_pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    lists_nodes = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    here = f"{RIGHTS}/namespaces/shop"
    cluster.api.create(f"{here}/roles", {"metadata": {"name": "looks"}, "rules": [lists_pods]})
    role = {"apiGroup": GROUP, "kind": "Role", "name": "looks"}
    cluster.api.create(f"{here}/rolebindings", {"metadata": {"name": "looks"}, "roleRef": role, "subjects": subjects})
    cluster.api.create(f"{RIGHTS}/clusterroles", {"metadata": {"name": "looks"}, "rules": [lists_nodes]})
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "looks"}
    cluster.api.create(
        f"{RIGHTS}/clusterrolebindings", {"metadata": {"name": "looks"}, "roleRef": role, "subjects": subjects}
    )
    yield
    cluster.api.delete(f"{RIGHTS}/clusterrolebindings/looks")
    cluster.api.delete(f"{RIGHTS}/clusterroles/looks")
    cluster.api.delete(f"{here}/rolebindings/looks")
    cluster.api.delete(f"{here}/roles/looks")


def a_pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


@pytest.mark.usefixtures("shop")
def test_users_see_the_pods_of_namespaces_that_they_may_list(cluster: Cluster):
    cluster.nodes(1)
    cluster.api.create("/api/v1/namespaces/shop/pods", a_pod("web"))
    cluster.pod("classified")
    page, _ = started(cluster)
    cluster.until(lambda: page.send(ADMIN, "cluster")[1]["counts"]["pods"] == 2, what="both pods")

    assert page.send("", "cluster")[0] == page.send("unknown", "cluster")[0] == 401
    code, found = page.send(POWERLESS, "pods")
    assert (code, [pod["name"] for pod in found["pods"]]) == (200, ["web"])
    assert page.send(POWERLESS, "pods/shop/web")[0] == 200
    code, found = page.send(POWERLESS, "pods/default/classified")
    assert code == 403
    assert 'may not list pods in namespace "default"' in found["error"]["message"]
    assert page.send(POWERLESS, "nodes")[0] == 200
    assert "classified" not in json.dumps([page.send(POWERLESS, path)[1] for path in ("queue", "nodes/node-1")])
    assert page.send(ADMIN, "pods/default/classified")[0] == 200


@pytest.mark.usefixtures("shop")
def test_actions_are_done_with_the_rights_of_the_user(cluster: Cluster):
    cluster.nodes(1)
    page, program = started(cluster)
    code, found = page.send(ADMIN, "nodes/node-1/cordon", "POST", {})
    assert (code, "--allow-actions" in found["error"]["message"]) == (403, True)
    program.end()

    page, _ = started(cluster, "--allow-actions")
    cluster.until(lambda: page.send(ADMIN, "cluster")[1]["counts"]["nodes"] == 1, what="the node")
    code, found = page.send(POWERLESS, "nodes/node-1/cordon", "POST", {})
    assert code == 403
    assert "cannot patch resource" in found["error"]["message"]
    assert page.send(ADMIN, "nodes/node-1/cordon", "POST", {})[0] == 200
    assert cluster.api.get("/api/v1/nodes/node-1")["spec"]["unschedulable"] is True
