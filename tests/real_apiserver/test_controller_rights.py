"""`mooring controllers` on a real API server with RBAC: it uses what `mooring manifests --controllers` grants."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import yaml
from tests.cli.programs import Program
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.deployments import Deployment, documents_in, manifests
from tests.real_apiserver.test_rights import CONFIG, Audit, granted

from mooring.framework.definitions import definition_of
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import CoschedulingGroup
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS: tuple[type[Any], ...] = (CoschedulingGroup, ElasticQuota, NodeResourceTopology)
GANGS = {("scheduling.k8s.io", "podgroups", verb) for verb in ("list", "watch")}
"""Of an alpha API, which the server may not serve."""


def test_controllers_may_do_what_they_do_and_nothing_else(cluster: Cluster):
    config = cluster.home / "scheduler.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    text = manifests(f"--config={config}", "--namespace=controllers", "--controllers", home=cluster.home)
    ours = [
        document
        for document in documents_in(text)
        if document["kind"] == "Namespace" or document["metadata"]["name"].endswith("-controllers")
    ]
    for kind in KINDS:
        cluster.api.create(DEFINITIONS, definition_of(kind))
    try:
        with Deployment(cluster, yaml.safe_dump_all(ours), Path()) as deployment:
            audit = Audit(cluster, deployment.user)
            write_kubeconfig(cluster, deployment.token())
            container = deployment.deployment["spec"]["template"]["spec"]["containers"][0]
            flags = [flag for flag in container["args"] if "--secure-port" not in flag]
            with Program("controllers", "--kubeconfig=controllers.kubeconfig", *flags, home=cluster.home) as program:
                program.mentions("Ready: controllers")
                make_objects(cluster)
                wanted = granted(ours) - GANGS
                cluster.until(lambda: wanted <= with_lists(audit.used()), what=f"requests for {wanted}")
                assert program.end() == 0, program.written()
            assert audit.refused() == []
            assert with_lists(audit.used()) | GANGS == granted(ours)
    finally:
        for kind in KINDS:
            cluster.api.delete(f"{DEFINITIONS}/{kind.KIND.name}")


def with_lists(used: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """A watch can begin with the initial list; if the server does not support that, or is busy, it is listed."""
    return used | {(group, resource, "list") for group, resource, verb in used if verb == "watch"}


def make_objects(cluster: Cluster) -> None:
    """A status to be written, and an event that is recorded and repeated."""
    create(cluster, CoschedulingGroup, "train", {"minMember": 1})
    create(cluster, ElasticQuota, "impossible", {"min": {"cpu": 4}, "max": {"cpu": 2}})
    for resource in ("cpu", "memory"):  # each changes `used`: the event about it is one with a count
        cluster.api.merge(ElasticQuota.KIND.path("default", "impossible"), {"spec": {"max": {resource: 3}}})
        cluster.until(partial(is_used, cluster, resource), what=f"{resource} in the status")


def create(cluster: Cluster, kind: type[Any], name: str, spec: dict[str, Any]) -> None:
    document = {"apiVersion": kind.KIND.api_version, "kind": kind.KIND.kind, "metadata": {"name": name}, "spec": spec}
    cluster.api.create(kind.KIND.path("default"), document)


def is_used(cluster: Cluster, resource: str) -> bool:
    found = cluster.api.get(ElasticQuota.KIND.path("default", "impossible"))
    return resource in ((found.get("status") or {}).get("used") or {})


def write_kubeconfig(cluster: Cluster, token: str, name: str = "controllers") -> Path:
    (cluster.home / "ca.pem").write_text(cluster.control_plane.ca_pem, encoding="utf-8")
    server = {"server": f"https://127.0.0.1:{cluster.control_plane.port}", "certificate-authority": "ca.pem"}
    document = {
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path = cluster.home / f"{name}.kubeconfig"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path
