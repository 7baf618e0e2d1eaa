"""Missing rights, at the start and later, and another scheduler for the same pods, on a real API server with RBAC."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apiserver.pod_group_requests import GATE_SETS
from tests.cli.programs import Program, private_home
from tests.real_apiserver.cluster import OURS_ALONE, PODS, Cluster, Document
from tests.real_apiserver.control_plane import ADMIN, POWERLESS, ControlPlane, with_gates
from tests.real_apiserver.deployments import Deployment, manifests

from mooring.client import ApiClient, Impersonation, load_kubeconfig
from mooring.config import load_configuration
from mooring.doctor import Finding, PlannedScheduler, examine
from mooring.doctor.findings import CheckStatus
from mooring.framework.gates import FeatureGates
from mooring.plugins.catalogue import catalogue

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: doctored
"""
ONLY_FIRST_NODE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}]
"""
WITH_AND_WITHOUT_VOLUMES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: without-volumes
  plugins:
    multiPoint: {disabled: [{name: VolumeBinding}, {name: NodeVolumeLimits}, {name: VolumeZone}]}
"""
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def config(cluster: Cluster) -> Path:
    path = cluster.home / "scheduler.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


@pytest.fixture
def deployment(cluster: Cluster, config: Path) -> Iterator[Deployment]:
    text = manifests(f"--config={config}", "--namespace=doctored", home=cluster.home)
    with Deployment(cluster, text, cluster.home) as applied:
        yield applied


class Doctor:
    """Runs the checks for the account of a deployment, without a process for each."""

    def __init__(self, cluster: Cluster, config: Path, user: str) -> None:
        connection = load_kubeconfig([cluster.control_plane.kubeconfig(ADMIN)])
        self._connection = dataclasses.replace(connection, impersonate=Impersonation(user))
        registry, gates = catalogue(), FeatureGates()
        configuration = load_configuration(config.read_text(), source="scheduler.yaml", registry=registry).configuration
        self._plan = PlannedScheduler(configuration, registry, configuration.leader_election, gates)

    def findings(self) -> list[Finding]:
        async def check() -> list[Finding]:
            async with ApiClient(self._connection, in_flight=4) as client:
                return [finding for finding in await examine(client, self._plan) if finding.check == "rights"]

        return asyncio.run(check())

    def missing(self) -> list[str]:
        return [
            finding.to_do for finding in self.findings() if finding.verdict in (CheckStatus.BAD, CheckStatus.NOTICE)
        ]


def as_doctor_writes(rule: Document) -> str:
    fields = {
        field: json.dumps(rule[field])
        for field in ("apiGroups", "resources", "resourceNames", "verbs")
        if field in rule
    }
    return "{" + ", ".join(f"{field}: {values}" for field, values in fields.items()) + "}"


def path_of(role: Document) -> str:
    metadata = role["metadata"]
    if role["kind"] == "ClusterRole":
        return f"{RBAC}/clusterroles/{metadata['name']}"
    return f"{RBAC}/namespaces/{metadata['namespace']}/roles/{metadata['name']}"


def test_each_rule_that_is_taken_away_is_named(cluster: Cluster, config: Path, deployment: Deployment):
    doctor = Doctor(cluster, config, deployment.user)
    cluster.until(lambda: not doctor.missing(), what="the rights of the manifests")
    (finding,) = doctor.findings()
    assert f'"{deployment.user}" has all' in finding.message
    roles = [document for document in deployment.documents if document["kind"] in ("ClusterRole", "Role")]
    assert {role["metadata"].get("namespace", "") for role in roles} == {"", "kube-system"}
    for role in roles:
        for taken in role["rules"]:
            left = [rule for rule in role["rules"] if rule is not taken]
            cluster.api.merge(path_of(role), {"rules": left})
            (to_do,) = cluster.until(doctor.missing, what=f"the doctor to miss {taken}")
            assert as_doctor_writes(taken) in to_do
        cluster.api.merge(path_of(role), {"rules": role["rules"]})
        cluster.until(lambda: not doctor.missing(), what="the rights that were given back")


def test_the_command_names_what_is_missing_and_exits_with_1(cluster: Cluster, config: Path, deployment: Deployment):
    doctor = Doctor(cluster, config, deployment.user)
    cluster.until(lambda: not doctor.missing(), what="the rights of the manifests")
    flags = (f"--config={config}", f"--kubeconfig={cluster.control_plane.kubeconfig(ADMIN)}")
    with Program("doctor", *flags, f"--as={deployment.user}", home=cluster.home) as well:
        assert well.ended() == 0, well.written()
    with Program("doctor", *flags, "--as=system:serviceaccount:doctored:absent", home=cluster.home) as unwell:
        assert unwell.ended() == 1
        written = unwell.written()
    assert "✗ rights" in written
    assert '{apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}' in written
    assert "mooring manifests --config" in written


def about_gates(control_plane: ControlPlane, home: Path, user: str = ADMIN) -> list[tuple[str, str]]:
    """Verdict and message."""
    gates = ",".join(f"{gate}=true" for gate in GATE_SETS["all"])
    flags = (f"--kubeconfig={control_plane.kubeconfig(user)}", f"--feature-gates={gates}", "--output=json")
    with Program("doctor", *flags, home=home) as doctor:
        doctor.ended()
        found = json.loads("\n".join(doctor.out))["findings"]
    return [(each["verdict"], each["message"]) for each in found if each["check"] == "gates"]


def test_gates_that_are_on_in_the_server_are_well(cluster_of_groups: Cluster):
    ((verdict, message),) = about_gates(cluster_of_groups.control_plane, cluster_of_groups.home)
    assert verdict == "ok"
    assert message.endswith("DRAWorkloadResourceClaims on, too")


def test_gates_that_are_off_in_the_server_are_named_to_a_user_who_may_read_them():
    with private_home() as folder, ControlPlane(folder, *with_gates(GATE_SETS["generic"])) as control_plane:
        found = about_gates(control_plane, folder)
        assert [(verdict, message.split()[4]) for verdict, message in found] == [
            ("warning", "TopologyAwareWorkloadScheduling"),
            ("warning", "WorkloadAwarePreemption"),
            ("warning", "DRAWorkloadResourceClaims"),
        ]
        ((verdict, message),) = about_gates(control_plane, folder, POWERLESS)
        assert verdict == "skipped"
        assert 'User "powerless" cannot get path "/metrics"' in message


AS_KUBE_SCHEDULER = ("system:kube-scheduler", "system:volume-scheduler")


def bind_powerless(cluster: Cluster, *roles: str) -> None:
    for role in roles:
        document = {
            "metadata": {"name": f"powerless-{role}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": "powerless", "apiGroup": "rbac.authorization.k8s.io"}],
        }
        cluster.api.create(f"{RBAC}/clusterrolebindings", document)


def unbind_powerless(cluster: Cluster, *roles: str) -> None:
    for role in roles:
        cluster.api.delete(f"{RBAC}/clusterrolebindings/powerless-{role}")


def test_rights_that_are_missing_or_vanish_are_named_and_when_they_come_it_goes_on(cluster: Cluster):
    cluster.nodes(1)
    kubeconfig = cluster.control_plane.kubeconfig(POWERLESS)
    with Program("run", f"--kubeconfig={kubeconfig}", "--leader-elect=false", home=cluster.home) as scheduler:
        waits = scheduler.mentions("Still waiting for the first list")
        assert r"resources: [\"nodes\"], verbs: [\"list\", \"watch\"]" in waits
        bind_powerless(cluster, *AS_KUBE_SCHEDULER)
        scheduler.ready()
        cluster.pod("first")
        cluster.bound("first")
        unbind_powerless(cluster, *AS_KUBE_SCHEDULER)
        cluster.pod("second")
        refused = scheduler.until_line(
            lambda line: "Error scheduling pod" in line and "default/second" in line, what="403"
        )
        assert r"resources: [\"pods/binding\"], verbs: [\"create\"]" in refused
        bind_powerless(cluster, *AS_KUBE_SCHEDULER)
        cluster.bound("second")
        unbind_powerless(cluster, *AS_KUBE_SCHEDULER)


def test_a_kind_that_is_forbidden_holds_only_the_profile_whose_plugins_read_it(cluster: Cluster):
    cluster.nodes(1)
    path = cluster.home / "two.yaml"
    path.write_text(WITH_AND_WITHOUT_VOLUMES, encoding="utf-8")
    of_pods, of_volumes = AS_KUBE_SCHEDULER
    bind_powerless(cluster, of_pods)
    flags = (f"--kubeconfig={cluster.control_plane.kubeconfig(POWERLESS)}", f"--config={path}", "--leader-elect=false")
    with Program("run", *flags, home=cluster.home) as scheduler:
        scheduler.ready()
        cluster.pod("held")
        message = cluster.refused("held")["message"]
        assert "profile default-scheduler waits for what its plugin" in message
        assert 'apiGroups: ["storage.k8s.io"], resources: ["storageclasses"], verbs: ["list", "watch"]' in message
        cluster.pod("free", schedulerName="without-volumes")
        cluster.bound("free")
        bind_powerless(cluster, of_volumes)
        cluster.bound("held")
    unbind_powerless(cluster, of_pods, of_volumes)


def test_a_lease_that_we_may_not_touch_is_named_with_the_rule_that_is_missing(cluster: Cluster):
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}
    cluster.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": "doctored-reader"}, "rules": [everything]})
    bind_powerless(cluster, "doctored-reader")
    kubeconfig = cluster.control_plane.kubeconfig(POWERLESS)
    with Program("run", f"--kubeconfig={kubeconfig}", "--leader-elect=true", home=cluster.home) as scheduler:
        refused = scheduler.mentions("Failed to acquire the lease")
        assert 'lock="kube-system/kube-scheduler"' in refused
        assert "a Role in namespace kube-system with this rule would allow it" in refused
        assert r"verbs: [\"get\", \"create\", \"update\"]" in refused
        assert scheduler.end() == 0
    unbind_powerless(cluster, "doctored-reader")
    cluster.api.delete(f"{RBAC}/clusterroles/doctored-reader")


def test_another_scheduler_that_binds_our_pods_is_noticed_and_named(cluster: Cluster):
    """Ours may use only the first node; what is bound to the second was bound by the real one."""
    cluster.nodes(2)
    path = cluster.home / "first.yaml"
    path.write_text(ONLY_FIRST_NODE, encoding="utf-8")
    admin = f"--kubeconfig={cluster.control_plane.kubeconfig(ADMIN)}"
    with Program("run", admin, f"--config={path}", *OURS_ALONE, home=cluster.home) as ours:
        ours.ready()
        cluster.pod("first")
        cluster.bound("first")
        cluster.kube_scheduler(admin, "--leader-elect=false")

        def look() -> Document | None:
            cluster.pod("theirs", nodeSelector={"kubernetes.io/hostname": "node-2"})
            cluster.bound("theirs")
            cluster.api.delete(f"{PODS}/theirs")
            found = cluster.api.items("/api/v1/namespaces/default/events?fieldSelector=reason=BoundByAnother")
            return found[0] if found else None

        event = cluster.until(look, what="an event about the other scheduler")
        assert event["message"].startswith(f"Bound to node-2 by default-scheduler-{socket.gethostname()}, which serves")
        line = ours.mentions("Another scheduler is binding pods of this profile")
        assert 'schedulerName="default-scheduler"' in line
