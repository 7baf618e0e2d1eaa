"""What runs scheduler-plugins runs Mooring: the configuration and the rights of its chart, with other programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.programs import Program
from tests.real_apiserver.cluster import Cluster, Document
from tests.real_apiserver.deployments import end_namespace
from tests.real_apiserver.test_controller_rights import DEFINITIONS, KINDS, create, write_kubeconfig
from tests.real_apiserver.test_rights import ROLES, Audit

from mooring.framework.definitions import definition_of
from mooring.plugins.community.capacity_scheduling.quotas import ElasticQuota
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup

PAGE = Path(__file__).parents[2] / "docs" / "from-scheduler-plugins.md"
NAMESPACE = "scheduler-plugins"
SCHEDULER, CONTROLLER = "scheduler-plugins-scheduler", "scheduler-plugins-controller"
READ = ["get", "list", "watch"]
ALL = [*READ, "create", "delete", "update", "patch"]
OWN_KINDS = ["podgroups", "elasticquotas", "podgroups/status", "elasticquotas/status"]

Rule = tuple[list[str], list[str], list[str]]
"""API groups, resources, verbs."""
RIGHTS: dict[str, list[Rule]] = {
    SCHEDULER: [
        ([""], ["namespaces", "replicationcontrollers", "services"], READ),
        (["", "events.k8s.io"], ["events"], ["create", "patch", "update"]),
        (["coordination.k8s.io"], ["leases"], ["create", "get", "update"]),
        ([""], ["nodes"], [*READ, "patch"]),
        ([""], ["pods"], [*READ, "delete", "update"]),
        ([""], ["bindings", "pods/binding"], ["create"]),
        ([""], ["pods/status"], ["patch", "update"]),
        (["apps"], ["replicasets", "statefulsets"], READ),
        (["policy"], ["poddisruptionbudgets"], READ),
        ([""], ["persistentvolumeclaims", "persistentvolumes"], [*READ, "patch", "update"]),
        (["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        (["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
        (["resource.k8s.io"], ["deviceclasses", "resourceclaims", "resourceslices"], READ),
        (
            ["storage.k8s.io"],
            ["csinodes", "storageclasses", "csidrivers", "csistoragecapacities", "volumeattachments"],
            READ,
        ),
        (["topology.node.k8s.io"], ["noderesourcetopologies"], READ),
        (["scheduling.x-k8s.io"], OWN_KINDS, ALL),
    ],
    CONTROLLER: [
        ([""], ["pods"], READ),
        ([""], ["events"], ["create", "patch", "update"]),
        (["coordination.k8s.io"], ["leases"], ["create", "get", "update"]),
        ([""], ["nodes"], [*READ, "patch"]),
        (["topology.node.k8s.io"], ["noderesourcetopologies"], READ),
        (["scheduling.x-k8s.io"], OWN_KINDS, ALL),
    ],
}
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture
def chart(cluster: Cluster) -> Iterator[Cluster]:
    """Accounts, rights and kinds as the chart installs them."""
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for account, rules in RIGHTS.items():
        cluster.api.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": account}})
        written = [{"apiGroups": groups, "resources": kinds, "verbs": verbs} for groups, kinds, verbs in rules]
        cluster.api.create(ROLES, {"metadata": {"name": account}, "rules": written})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
        cluster.api.create(BINDINGS, {"metadata": {"name": account}, "roleRef": role, "subjects": [subject]})
    for kind in KINDS:
        cluster.api.create(DEFINITIONS, definition_of(kind))
    yield cluster
    for kind in KINDS:
        cluster.api.delete(f"{DEFINITIONS}/{kind.KIND.name}")
    for account in RIGHTS:
        cluster.api.delete(f"{BINDINGS}/{account}")
        cluster.api.delete(f"{ROLES}/{account}")
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")
    end_namespace(cluster, NAMESPACE)


def kubeconfig(cluster: Cluster, account: str) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    token: str = cluster.api.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return f"--kubeconfig={write_kubeconfig(cluster, token, account)}"


def the_configuration_of_the_page() -> str:
    [text] = re.findall(r"^```yaml\n(apiVersion: kubescheduler.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert yaml.safe_load(text)["profiles"][0]["schedulerName"] == SCHEDULER
    return str(text)


def a_member(cluster: Cluster, name: str) -> None:
    cluster.pod(name, labels={GROUP_LABEL: "train"}, schedulerName=SCHEDULER)


def status(cluster: Cluster, kind: type[Any], name: str) -> Document:
    found: Document = cluster.api.get(kind.KIND.path("default", name)).get("status") or {}
    return found


def test_the_configuration_and_the_rights_of_the_chart_suffice(chart: Cluster):
    config = chart.home / "scheduler-config.yaml"
    config.write_text(the_configuration_of_the_page(), encoding="utf-8")
    audits = [Audit(chart, f"system:serviceaccount:{NAMESPACE}:{account}") for account in RIGHTS]
    chart.nodes(2)
    flags = ("run", kubeconfig(chart, SCHEDULER), f"--config={config}")
    with (
        Program(*flags, home=chart.home) as scheduler,
        Program("controllers", kubeconfig(chart, CONTROLLER), home=chart.home) as controllers,
    ):
        scheduler.ready()
        controllers.mentions("Ready: controllers")
        create(chart, CoschedulingGroup, "train", {"minMember": 2})
        create(chart, ElasticQuota, "quota", {"min": {"cpu": "4"}, "max": {"cpu": "8"}})
        for name in ("train-0", "train-1"):
            a_member(chart, name)
        chart.all_bound(2)
        chart.until(lambda: status(chart, CoschedulingGroup, "train").get("phase") == "Running", what="a running group")
        chart.until(lambda: status(chart, ElasticQuota, "quota").get("used") == {"cpu": "200m"}, what="the use")
        assert [audit.refused() for audit in audits] == [[], []]
