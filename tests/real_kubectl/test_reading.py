"""kubectl reads: get in every form, describe, events, api-resources."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator

import pytest
import yaml
from tests.real_kubectl.conftest import TIMEOUT_SECONDS, Kubectl, Up

# An image of its own: one that a test before has brought to the node is not pulled again.
PODS = """
apiVersion: v1
kind: Pod
metadata: {name: alpha, labels: {app: web, tier: front}}
spec:
  nodeSelector: {kubernetes.io/hostname: node-1}
  containers:
  - {name: main, image: "nginx:1.26", resources: {requests: {cpu: 200m, memory: 50Mi}}, ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: beta, labels: {app: web, tier: back}}
spec: {nodeName: node-2, containers: [{name: main, image: pause}, {name: side, image: pause}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting, labels: {app: other}}
spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: "1000"}}}]}
"""


@pytest.fixture(scope="module")
def pods(up: Up) -> Iterator[Kubectl]:
    """Two pods that run and one that cannot, in a namespace of this file."""
    up.run("create", "namespace", "reading")
    kubectl = up.in_namespace("reading")
    kubectl.run("apply", "-f", "-", input=PODS)
    kubectl.run("wait", "--for=condition=Ready", "pod/alpha", "pod/beta", "--timeout=60s")
    kubectl.run("wait", "--for=condition=PodScheduled=False", "pod/waiting", "--timeout=60s")
    kubectl.events("alpha", "Scheduled", "Pulling", "Pulled", "Created", "Started")
    kubectl.events("waiting", "FailedScheduling")
    yield kubectl
    up.run("delete", "namespace", "reading", "--wait=false")


def test_nodes_as_a_table(up: Up):
    rows = up.rows("get", "nodes")
    assert [row["NAME"] for row in rows] == ["node-1", "node-2", "node-3"]
    assert {row["STATUS"] for row in rows} == {"Ready"}
    assert all(row["VERSION"].startswith("v1.36") for row in rows)


def test_nodes_as_a_wide_table(up: Up):
    row = up.rows("get", "nodes", "-o", "wide")[0]
    assert row["INTERNAL-IP"].count(".") == 3
    assert row["CONTAINER-RUNTIME"].startswith("containerd://")


def test_pods_as_a_table(pods: Kubectl):
    rows = {row["NAME"]: row for row in pods.rows("get", "pods")}
    assert (rows["alpha"]["READY"], rows["alpha"]["STATUS"], rows["alpha"]["RESTARTS"]) == ("1/1", "Running", "0")
    assert (rows["beta"]["READY"], rows["beta"]["STATUS"]) == ("2/2", "Running")
    assert (rows["waiting"]["READY"], rows["waiting"]["STATUS"]) == ("0/1", "Pending")


def test_pods_as_a_wide_table(pods: Kubectl):
    rows = {row["NAME"]: row for row in pods.rows("get", "pods", "-o", "wide")}
    assert rows["beta"]["NODE"] == "node-2"
    assert rows["beta"]["IP"].count(".") == 3
    assert (rows["waiting"]["NODE"], rows["waiting"]["IP"]) == ("<none>", "<none>")


def test_one_object_as_yaml_and_json_is_whole(pods: Kubectl):
    as_yaml = yaml.safe_load(pods.out("get", "pod", "alpha", "-o", "yaml"))
    as_json = json.loads(pods.out("get", "pod", "alpha", "-o", "json"))
    assert as_yaml == as_json
    assert (as_json["apiVersion"], as_json["kind"]) == ("v1", "Pod")
    assert as_json["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "200m", "memory": "50Mi"}}
    assert as_json["status"]["qosClass"] == "Burstable"


def test_a_list_as_json(pods: Kubectl):
    found = pods.json("get", "pods")
    assert found["kind"] == "List"
    assert [item["metadata"]["name"] for item in found["items"]] == ["alpha", "beta", "waiting"]


def test_jsonpath_name_and_custom_columns(pods: Kubectl):
    assert pods.out("get", "pod", "beta", "-o", "jsonpath={.spec.containers[*].name}") == "main side"
    assert pods.out("get", "pods", "-o", "name").split() == ["pod/alpha", "pod/beta", "pod/waiting"]
    assert pods.rows("get", "pod", "beta", "-o", "custom-columns=N:.metadata.name,WHERE:.spec.nodeName") == [
        {"N": "beta", "WHERE": "node-2"}
    ]


SELECTIONS = {
    "a label": (["-l", "app=web"], ["alpha", "beta"]),
    "a label that must differ": (["-l", "app!=web"], ["waiting"]),
    "a label in a set": (["-l", "tier in (front, none)"], ["alpha"]),
    "a label that must be absent": (["-l", "!tier"], ["waiting"]),
    "a node": (["--field-selector", "spec.nodeName=node-2"], ["beta"]),
    "a phase": (["--field-selector", "status.phase=Pending"], ["waiting"]),
    "a name and a label": (["-l", "app=web", "--field-selector", "metadata.name!=beta"], ["alpha"]),
    "nothing that exists": (["-l", "app=nothing"], []),
}


@pytest.mark.parametrize(("options", "names"), SELECTIONS.values(), ids=SELECTIONS.keys())
def test_pods_are_selected_by(pods: Kubectl, options: list[str], names: list[str]):
    assert pods.out("get", "pods", "-o", "name", *options).split() == [f"pod/{name}" for name in names]


def test_a_field_that_cannot_be_selected_by_is_refused(pods: Kubectl):
    assert "spec.priority" in pods.refusal("get", "pods", "--field-selector", "spec.priority=1")


def test_sorting(pods: Kubectl):
    by_name = pods.out("get", "pods", "--sort-by=.metadata.name", "-o", "name").split()
    assert by_name == ["pod/alpha", "pod/beta", "pod/waiting"]
    by_label = pods.rows("get", "pods", "-l", "tier", "--sort-by=.metadata.labels.tier")
    assert [row["NAME"] for row in by_label] == ["beta", "alpha"]


def test_all_namespaces_and_label_columns(pods: Kubectl):
    rows = {row["NAME"]: row for row in pods.rows("get", "pods", "-A", "-L", "tier")}
    assert rows["alpha"]["NAMESPACE"] == "reading"
    assert rows["alpha"]["TIER"] == "front"


def test_nothing_found_and_nothing_known(pods: Kubectl):
    assert pods.run("get", "configmaps").stderr == "No resources found in reading namespace.\n"
    assert 'Error from server (NotFound): pods "absent" not found' in pods.refusal("get", "pod", "absent")
    assert 'doesn\'t have a resource type "things"' in pods.refusal("get", "things")


def test_a_watch_shows_what_changes(pods: Kubectl):
    pods.run("run", "watched", "--image=pause", "--restart=Never")
    only = "--field-selector=metadata.name=watched"
    command = pods.command("get", "pods", "-w", only, "--output-watch-events", "--no-headers")
    with subprocess.Popen(command, env=pods.environment(), stdout=subprocess.PIPE, text=True) as watching:
        # It lists before it watches: what is read first is there, however late it starts.
        give_up = threading.Timer(TIMEOUT_SECONDS, watching.kill)
        give_up.start()
        assert watching.stdout is not None
        seen = [next(watching.stdout).split()]
        pods.run("delete", "pod", "watched", "--wait=false")
        while seen[-1][0] != "DELETED":
            seen.append(next(watching.stdout).split())
        give_up.cancel()
        watching.terminate()
    assert seen[0][:2] == ["ADDED", "watched"]
    assert "MODIFIED" in [event for event, *_ in seen]


def test_describing_a_pod_that_runs(pods: Kubectl):
    text = pods.out("describe", "pod", "alpha")
    fields = {line.partition(":")[0]: line.partition(":")[2].strip() for line in text.splitlines() if ":" in line}
    assert fields["Node"].startswith("node-")
    assert fields["Status"] == "Running"
    assert fields["IP"].count(".") == 3
    assert fields["Start Time"]
    assert fields["QoS Class"] == "Burstable"
    assert "Started:" in text
    conditions = text[text.index("Conditions:") : text.index("Volumes:")].split()
    for condition in ("PodScheduled", "Initialized", "ContainersReady", "Ready"):
        assert conditions[conditions.index(condition) + 1] == "True"
    assert "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" in text


def test_describing_a_pod_shows_its_life_as_events(pods: Kubectl):
    events = pods.out("describe", "pod", "alpha").partition("Events:")[2].splitlines()
    reasons = {line.split()[1]: line for line in events[3:]}
    assert set(reasons) == {"Scheduled", "Pulling", "Pulled", "Created", "Started"}
    assert "Successfully assigned reading/alpha to node-" in reasons["Scheduled"]
    assert "default-scheduler" in reasons["Scheduled"]
    assert 'Pulling image "nginx:1.26"' in reasons["Pulling"]
    assert "kubelet" in reasons["Started"]


def test_describe_shows_why_a_pod_is_pending(pods: Kubectl):
    text = pods.out("describe", "pod", "waiting")
    assert "FailedScheduling" in text
    assert "0/3 nodes are available: 3 Insufficient cpu." in text


def test_describing_a_node(pods: Kubectl):
    text = pods.out("describe", "node", "node-2")
    assert "kubernetes.io/hostname=node-2" in text
    assert "KubeletReady" in text
    assert "Capacity:\n  cpu:" in text
    assert "Taints:             <none>" in text
    running = text[text.index("Non-terminated Pods:") : text.index("Allocated resources:")]
    assert "beta" in running
    assert "Events:" in text


def test_a_node_shows_signs_of_life(pods: Kubectl):
    # The leases of three nodes are made one after the other; this waits for the one looked at.
    pods.run("wait", "--for=create", "lease/node-1", "--namespace=kube-node-lease", "--timeout=60s")
    assert "HolderIdentity:  node-1" in pods.out("describe", "node", "node-1")


def test_events_of_both_groups_are_the_same(pods: Kubectl):
    core = pods.json("get", "events", "--field-selector", "involvedObject.name=alpha")["items"]
    modern = [
        event for event in pods.json("get", "events.events.k8s.io")["items"] if event["regarding"]["name"] == "alpha"
    ]
    assert {event["apiVersion"] for event in core} == {"v1"}
    assert {event["apiVersion"] for event in modern} == {"events.k8s.io/v1"}
    assert {(event["metadata"]["uid"], event["reason"], event["message"]) for event in core} == {
        (event["metadata"]["uid"], event["reason"], event["note"]) for event in modern
    }


@pytest.mark.parametrize("command", [["get", "events"], ["events"], ["events", "--for=pod/waiting"]], ids=" ".join)
def test_events_as_a_table(pods: Kubectl, command: list[str]):
    rows = pods.rows(*command)
    refused = [row for row in rows if row["REASON"] == "FailedScheduling"]
    assert refused[0]["TYPE"] == "Warning"
    assert refused[0]["OBJECT"].lower() == "pod/waiting"
    assert refused[0]["MESSAGE"].startswith("0/3 nodes are available: ")


def test_api_resources(up: Up):
    rows = {(row["APIVERSION"], row["NAME"]): row for row in up.rows("api-resources")}
    for version, name, kind in (
        ("v1", "pods", "Pod"),
        ("v1", "nodes", "Node"),
        ("v1", "namespaces", "Namespace"),
        ("v1", "serviceaccounts", "ServiceAccount"),
        ("v1", "configmaps", "ConfigMap"),
        ("v1", "events", "Event"),
        ("events.k8s.io/v1", "events", "Event"),
        ("apps/v1", "deployments", "Deployment"),
        ("apps/v1", "replicasets", "ReplicaSet"),
        ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding"),
        ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"),
    ):
        assert rows[version, name]["KIND"] == kind
    assert rows["v1", "pods"]["SHORTNAMES"] == "po"
    assert rows["v1", "nodes"]["NAMESPACED"] == "false"


def test_the_version_and_the_fields_of_a_kind(up: Up):
    assert up.json("version")["serverVersion"]["gitVersion"].startswith("v1.36")
    assert "FIELD: nodeName <string>" in up.out("explain", "pod.spec.nodeName")
    assert "tolerations\t<[]Toleration>" in up.out("explain", "pod.spec")
