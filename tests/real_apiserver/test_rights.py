"""The manifests on a real API server with RBAC: they are accepted, and the scheduler uses exactly what they grant."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.ports import free_ports
from tests.real_apiserver import test_devices as devices
from tests.real_apiserver import test_volumes as volumes
from tests.real_apiserver.cluster import PODS, Cluster, Document
from tests.real_apiserver.deployments import Deployment, manifests

from mooring.deploy.upstream import granted_everywhere

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""
Right = tuple[str, str, str]
"""API group, resource with subresource, verb."""
GET_POD, GET_CLAIM = ("", "pods", "get"), ("resource.k8s.io", "resourceclaims", "get")
TAKE_VOLUME = ("", "persistentvolumes", "patch")
LIST_EVENTS = ("", "events", "list")
DELETE_CLAIM = ("resource.k8s.io", "resourceclaims", "delete")
CHECKED_WITHIN = {("resource.k8s.io", "resourceclaims/binding", "patch")}
"""The server checks this with its authorizer while it writes a claim's status; no request is about it."""
AUTHENTICATION = (
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/extension-apiserver-authentication-reader"
)
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
GPUS = {"requests": {devices.GPU: "1"}, "limits": {devices.GPU: "1"}}
MOST_RACES = 200
COMPARED = re.compile(r"^mooring_shadow_decisions_total\{.*\} [1-9]", re.MULTILINE)


@pytest.fixture
def config(cluster: Cluster) -> Path:
    path = cluster.home / "scheduler.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.fixture
def equipped(cluster: Cluster) -> Iterator[Cluster]:
    """A node with devices, and controllers that make volumes; nothing of it stays."""
    yield from devices.with_devices(cluster, "--controllers")
    for path in (volumes.CLAIMS, volumes.VOLUMES, volumes.CLASSES):
        for each in cluster.api.items(path):
            cluster.api.merge(f"{path}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
        cluster.api.delete(path)


def granted_by(rules: list[Document]) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def granted(documents: list[Document]) -> set[Right]:
    roles = [document for document in documents if document["kind"] in ("ClusterRole", "Role")]
    return {right for role in roles for right in granted_by(role["rules"])}


class Audit:
    """The requests of an account."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        self._log, self._user = cluster.control_plane.audit_log, user

    def requests(self) -> Iterator[tuple[str, Right]]:
        """Each with the server's decision."""
        for line in self._log.read_text(encoding="utf-8").splitlines():
            if self._user in line and (about := (event := json.loads(line)).get("objectRef")):
                resource = "/".join(each for each in (about["resource"], about.get("subresource")) if each)
                decision = event["annotations"].get("authorization.k8s.io/decision", "")
                yield decision, (about.get("apiGroup", ""), resource, event["verb"])

    def used(self) -> set[Right]:
        return {what for _, what in self.requests()}

    def refused(self) -> list[Right]:
        return [what for decision, what in self.requests() if decision != "allow"]


def test_it_may_do_what_it_does_and_nothing_else(equipped: Cluster, config: Path, image_root: Path):
    cluster = equipped
    text = manifests(f"--config={config}", "--name=mooring-rights", "--namespace=rights", home=cluster.home)
    with Deployment(cluster, text, image_root) as deployment:
        port = free_ports(1)[0]
        scheduler = deployment.start(f"--secure-port={port}")
        scheduler.ready()
        audit = Audit(cluster, deployment.user)
        work(cluster, audit)
        # The server sends a TokenReview and a SubjectAccessReview.
        status, _ = scrape(port, {"Authorization": f"Bearer {deployment.token()}"})
        assert status == 403
        assert scheduler.end() == 0, scheduler.written()
    assert audit.refused() == []
    used = audit.used() - granted_by(cluster.api.get(AUTHENTICATION)["rules"])
    # A watch can begin with the initial list; if the server does not support that, or is busy, it is listed.
    used |= {(group, resource, "list") for group, resource, verb in used if verb == "watch"}
    assert used == granted(deployment.documents) - CHECKED_WITHIN


def scrape(port: int, headers: Mapping[str, str]) -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
    connection.request("GET", "/metrics", headers=dict(headers))
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def metrics(port: int) -> str:
    """Without rights of its own."""
    status, text = scrape(port, {})
    assert status == 200, text
    return text


def work(cluster: Cluster, audit: Audit) -> None:
    """Everything that makes a scheduler send requests."""
    preempt(cluster)
    make_volumes(cluster, audit)
    give_devices(cluster)
    take_a_claim_back(cluster, audit)
    meet_conflicts(cluster, audit)
    be_overtaken(cluster, audit)


def preempt(cluster: Cluster) -> None:
    cluster.priority("urgent", 1000)
    cluster.pod("low", cpu="3")
    cluster.bound("low")
    cluster.pod("high", cpu="3", priorityClassName="urgent")
    cluster.bound("high")
    cluster.pod("too-large", cpu="1000")
    cluster.refused("too-large")
    cluster.api.delete(f"{PODS}/high")


def make_volumes(cluster: Cluster, audit: Audit) -> None:
    volumes.a_class(cluster, "disks.example.com")
    volumes.a_pod(cluster, "provisioned")
    cluster.running("provisioned")
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    spec = {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "local": {"path": "/mnt"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }

    def take(number: int) -> None:
        cluster.api.create(volumes.VOLUMES, {"metadata": {"name": f"disk-{number}"}, "spec": spec})
        volumes.a_pod(cluster, f"taker-{number}")
        cluster.bound(f"taker-{number}")

    # A claim whose volume the scheduler has not observed yet gets another one provisioned.
    again_until(audit, TAKE_VOLUME, take)


def give_devices(cluster: Cluster) -> None:
    devices.a_claim(cluster, "one")
    devices.a_pod(cluster, "with-device", "one")
    cluster.bound("with-device")


def take_a_claim_back(cluster: Cluster, audit: Audit) -> None:
    """A pod's extended resource gets a claim, and the binding is rejected: the claim must be deleted."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    validation = {"expression": "!object.metadata.name.startsWith('doomed')"}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation], "failurePolicy": "Fail"}
    cluster.api.create(f"{POLICIES}/validatingadmissionpolicies", {"metadata": {"name": "doom"}, "spec": policy})
    binding = {"metadata": {"name": "doom"}, "spec": {"policyName": "doom", "validationActions": ["Deny"]}}
    cluster.api.create(f"{POLICIES}/validatingadmissionpolicybindings", binding)

    def doom(name: str) -> None:
        cluster.pod(name, containers=[{"name": "main", "image": "pause", "resources": GPUS}])
        cluster.until(
            lambda: cluster.events(name, "FailedScheduling") or cluster.events(name, "Scheduled"), what="a decision"
        )
        cluster.api.delete(f"{PODS}/{name}")

    # The policy holds a moment after it was made.
    again_until(audit, DELETE_CLAIM, lambda number: doom(f"doomed-{number}"))
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        cluster.api.delete(f"{POLICIES}/{kind}/doom")


def meet_conflicts(cluster: Cluster, audit: Audit) -> None:
    """Another client writes what the scheduler is about to write: it reads the object again."""

    def change(path: str) -> None:
        for number in range(10):
            cluster.api.merge(path, {"metadata": {"annotations": {"changed": str(number)}}})

    def refuse_a_pod(number: int) -> None:
        cluster.pod(name := f"large-{number}", cpu="1000")
        change(f"{PODS}/{name}")
        cluster.api.delete(f"{PODS}/{name}")

    def allocate_a_claim(number: int) -> None:
        devices.a_claim(cluster, name := f"claim-{number}")
        devices.a_pod(cluster, name, name)
        change(f"{devices.CLAIMS}/{name}")
        cluster.bound(name)
        cluster.api.delete(f"{PODS}/{name}")
        devices.deallocate(cluster, name)

    again_until(audit, GET_POD, refuse_a_pod)
    again_until(audit, GET_CLAIM, allocate_a_claim)


def be_overtaken(cluster: Cluster, audit: Audit) -> None:
    """Another client binds a pod that waits: which?"""

    def overtake(number: int) -> None:
        cluster.pod(name := f"overtaken-{number}", nodeSelector={"nowhere": "true"})
        cluster.refused(name)
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-1"}}
        cluster.api.create(f"{PODS}/{name}/binding", target)
        cluster.bound(name)
        cluster.api.delete(f"{PODS}/{name}")

    # The first moments after the first binding belong to the previous leader.
    again_until(audit, LIST_EVENTS, overtake)


def again_until(audit: Audit, right: Right, do: Callable[[int], None]) -> None:
    for number in itertools.count():
        if right in audit.used():
            return
        assert number < MOST_RACES, f"after {number} tries there was no request for {right}"
        do(number)


def test_every_cluster_grants_kube_scheduler_the_rights_we_list(cluster: Cluster):
    roles = [cluster.api.get(f"{ROLES}/system:{name}")["rules"] for name in ("kube-scheduler", "volume-scheduler")]
    theirs = {right for rules in roles for right in granted_by(rules)}
    assert {(right.group, right.resource, right.verb) for right in granted_everywhere()} <= theirs


def test_a_shadow_reads_what_it_may_and_requests_nothing_else(cluster: Cluster, config: Path, image_root: Path):
    text = manifests(f"--config={config}", "--as=shadow", "--namespace=shadow", home=cluster.home)
    with Deployment(cluster, text, image_root) as deployment:
        port = free_ports(1)[0]
        shadow = deployment.start(f"--secure-port={port}")
        shadow.ready()
        cluster.nodes(1)
        cluster.scheduler()
        cluster.pod("web")
        cluster.bound("web")
        cluster.until(lambda: COMPARED.search(metrics(port)), what="a comparison")
        assert shadow.end() == 0, shadow.written()
        audit = Audit(cluster, deployment.user)
        assert audit.refused() == []
        used = audit.used()
        used |= {(group, resource, "list") for group, resource, verb in used if verb == "watch"}
        assert used == granted(deployment.documents)
        assert {verb for _, _, verb in used} == {"list", "watch"}
