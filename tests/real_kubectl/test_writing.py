"""kubectl writes: apply, create, label, annotate, taint, cordon, scale, delete; and what is refused."""

from __future__ import annotations

import pytest
from tests.real_kubectl.conftest import Kubectl, Up

SEVERAL = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, labels: {tier: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec: {containers: [{name: main, image: "nginx:1.27", resources: {requests: {cpu: 100m}}}]}
"""
EVERYDAY = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sts}
spec:
  serviceName: sts
  selector: {matchLabels: {app: sts}}
  template:
    metadata: {labels: {app: sts}}
    spec: {containers: [{name: c, image: nginx, volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template: {metadata: {labels: {app: ds}}, spec: {containers: [{name: c, image: nginx}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: cj}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ing}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec: {podSelector: {}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: rq}
spec: {hard: {pods: "100"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: []
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {a: b}
"""
A_POD = """
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: "%s"}}}]}
"""


def test_apply_creates_changes_and_leaves_alone(shop: Kubectl):
    names = ["configmap/settings", "serviceaccount/robot", "deployment.apps/front"]
    assert shop.out("apply", "-f", "-", input=SEVERAL).splitlines() == [f"{name} created" for name in names]
    assert shop.out("apply", "-f", "-", input=SEVERAL).splitlines() == [f"{name} unchanged" for name in names]
    changed = SEVERAL.replace("red", "blue")
    assert shop.out("apply", "-f", "-", input=changed).splitlines()[0] == "configmap/settings configured"
    assert shop.json("get", "configmap", "settings")["data"] == {"colour": "blue"}
    assert shop.run("diff", "-f", "-", input=changed).stdout == ""


def test_apply_removes_what_left_the_file_and_keeps_what_others_set(shop: Kubectl):
    both = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1', b: '2'}}"
    shop.run("apply", "-f", "-", input=both)
    shop.run("patch", "configmap", "c", "-p", '{"data": {"theirs": "3"}}')
    shop.run("apply", "-f", "-", input=both.replace(", b: '2'", ""))
    assert shop.json("get", "configmap", "c")["data"] == {"a": "1", "theirs": "3"}


CREATIONS = {
    "deployment web --image=nginx --replicas=2": "deployment.apps/web created",
    "configmap settings --from-literal=a=b": "configmap/settings created",
    "secret generic hidden --from-literal=a=b": "secret/hidden created",
    "serviceaccount robot": "serviceaccount/robot created",
    "role reader --verb=get --resource=pods": "role.rbac.authorization.k8s.io/reader created",
    "rolebinding read --role=reader --user=me": "rolebinding.rbac.authorization.k8s.io/read created",
    "service clusterip web --tcp=80:80": "service/web created",
    "poddisruptionbudget web --selector=app=web --min-available=1": "poddisruptionbudget.policy/web created",
}


@pytest.mark.parametrize(("what", "printed"), CREATIONS.items(), ids=[what.split()[0] for what in CREATIONS])
def test_create(shop: Kubectl, what: str, printed: str):
    assert shop.out("create", *what.split()) == f"{printed}\n"
    assert "already exists" in shop.refusal("create", *what.split())


CLUSTER_WIDE = {
    "namespace mine": "namespace/mine",
    "clusterrole mine --verb=get,list --resource=pods,nodes": "clusterrole.rbac.authorization.k8s.io/mine",
    "clusterrolebinding mine --clusterrole=x --user=me": "clusterrolebinding.rbac.authorization.k8s.io/mine",
    "priorityclass mine --value=1000": "priorityclass.scheduling.k8s.io/mine",
}


@pytest.mark.parametrize(("what", "name"), CLUSTER_WIDE.items(), ids=[what.split()[0] for what in CLUSTER_WIDE])
def test_create_what_belongs_to_no_namespace(up: Up, what: str, name: str):
    assert up.out("create", *what.split()) == f"{name} created\n"
    up.run("delete", name)
    assert "NotFound" in up.refusal("get", name)


def test_what_was_created_can_be_described(shop: Kubectl):
    shop.run("create", "role", "reader", "--verb=get", "--resource=pods")
    assert "pods       []                 []              [get]" in shop.out("describe", "role", "reader")
    shop.run("create", "configmap", "settings", "--from-literal=colour=red")
    assert "colour:\n----\nred" in shop.out("describe", "configmap", "settings")


def test_labels_are_set_kept_overwritten_and_removed(up: Up):
    assert up.out("label", "node", "node-1", "disk=ssd") == "node/node-1 labeled\n"
    assert "already has a value (ssd)" in up.refusal("label", "node", "node-1", "disk=hdd")
    up.run("label", "node", "node-1", "disk=hdd", "--overwrite")
    assert up.out("get", "nodes", "-l", "disk=hdd", "-o", "name") == "node/node-1\n"
    assert up.out("label", "node", "node-1", "disk-") == "node/node-1 unlabeled\n"
    assert up.run("get", "nodes", "-l", "disk").stderr == "No resources found\n"


def test_a_label_that_is_none_is_refused(up: Up):
    assert "a valid label must be" in up.refusal("label", "node", "node-1", "disk=not valid")


def test_annotations_are_set_and_removed(shop: Kubectl):
    shop.run("create", "configmap", "c")
    assert shop.out("annotate", "configmap", "c", "who=me") == "configmap/c annotated\n"
    assert shop.json("get", "configmap", "c")["metadata"]["annotations"] == {"who": "me"}
    shop.run("annotate", "configmap", "c", "who-")
    assert "annotations" not in shop.json("get", "configmap", "c")["metadata"]


def test_a_tainted_node_refuses_pods_until_it_is_not(up: Up, shop: Kubectl):
    for node in ("node-1", "node-2", "node-3"):
        assert up.out("taint", "node", node, "reserved=yes:NoSchedule") == f"node/{node} tainted\n"
    try:
        assert "already has reserved taint" in up.refusal("taint", "node", "node-1", "reserved=yes:NoSchedule")
        assert "Taints:             reserved=yes:NoSchedule" in up.out("describe", "node", "node-1")
        shop.run("run", "web", "--image=pause")
        shop.run("wait", "--for=condition=PodScheduled=False", "pod/web", "--timeout=60s")
        message = shop.json("get", "pod", "web")["status"]["conditions"][0]["message"]
        assert message.startswith("0/3 nodes are available: 3 node(s) had untolerated taint")
    finally:
        for node in ("node-1", "node-2", "node-3"):
            up.run("taint", "node", node, "reserved-")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")


def test_a_cordoned_node_takes_no_pods_until_it_is_uncordoned(up: Up, shop: Kubectl):
    assert up.out("cordon", "node-2") == "node/node-2 cordoned\n"
    try:
        assert up.rows("get", "node", "node-2")[0]["STATUS"] == "Ready,SchedulingDisabled"
        shop.run("create", "deployment", "web", "--image=pause", "--replicas=4")
        shop.run("rollout", "status", "deployment/web", "--timeout=60s")
        assert {row["NODE"] for row in shop.rows("get", "pods", "-o", "wide")} == {"node-1", "node-3"}
    finally:
        assert up.out("uncordon", "node-2") == "node/node-2 uncordoned\n"


def test_a_node_is_drained(up: Up, shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause", "--replicas=3")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    try:
        up.run("drain", "node-3", "--force", "--ignore-daemonsets", "--timeout=60s")
        shop.run("rollout", "status", "deployment/web", "--timeout=60s")
        assert "node-3" not in {row["NODE"] for row in shop.rows("get", "pods", "-o", "wide")}
    finally:
        up.run("uncordon", "node-3")


def test_scaling_a_deployment_makes_and_removes_pods(shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause")
    assert shop.out("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert shop.rows("get", "deployment", "web")[0]["READY"] == "3/3"
    shop.run("scale", "deployment/web", "--replicas=1")
    shop.run("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s")
    shop.shows("Scaled down replica set", "describe", "deployment", "web")


def test_a_new_image_is_rolled_out_and_back(shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause:1", "--replicas=2")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    shop.run("set", "image", "deployment/web", "pause=pause:2")
    assert "successfully rolled out" in shop.out("rollout", "status", "deployment/web", "--timeout=60s")
    assert shop.json("get", "pods")["items"][0]["spec"]["containers"][0]["image"] == "pause:2"
    assert len(shop.rows("get", "replicasets")) == 2
    shop.run("rollout", "undo", "deployment/web")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert shop.json("get", "deployment", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "pause:1"


def test_describing_a_deployment(shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause", "--replicas=2")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    text = shop.shows("Scaled up replica set", "describe", "deployment", "web")
    assert "Replicas:               2 desired | 2 updated | 2 total | 2 available | 0 unavailable" in text
    assert "Available      True    MinimumReplicasAvailable" in text
    assert "NewReplicaSet:   web-" in text


def test_deleting_a_pod(shop: Kubectl):
    shop.run("run", "web", "--image=pause")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    assert shop.out("delete", "pod", "web").startswith('pod "web" deleted')
    assert "NotFound" in shop.refusal("get", "pod", "web")


def test_deleting_a_deployment_deletes_what_it_made(shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause", "--replicas=2")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    shop.run("delete", "deployment", "web")
    shop.run("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s")
    assert shop.out("get", "replicasets,pods", "-o", "name") == ""


def test_deleting_without_cascade_leaves_orphans(shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    shop.run("delete", "deployment", "web", "--cascade=orphan")
    (left,) = shop.json("get", "replicasets")["items"]
    assert "ownerReferences" not in left["metadata"]


def test_deleting_a_namespace_deletes_what_is_in_it(up: Up):
    up.run("create", "namespace", "short-lived")
    kubectl = up.in_namespace("short-lived")
    kubectl.run("create", "configmap", "c")
    kubectl.run("run", "web", "--image=pause")
    up.run("delete", "namespace", "short-lived", "--timeout=60s")
    assert "NotFound" in up.refusal("get", "namespace", "short-lived")
    assert kubectl.out("get", "configmaps,pods", "-o", "name") == ""


def test_logs_and_exec_are_refused_with_a_sentence(shop: Kubectl):
    shop.run("run", "web", "--image=pause")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    assert "simulated containers have no output" in shop.refusal("logs", "web")
    assert "simulated containers run no processes" in shop.refusal("exec", "web", "--", "ls")
    assert "a debug container could not look at any" in shop.refusal("debug", "web", "--image=busybox")
    assert "the embedded API server issues no tokens" in shop.refusal("create", "token", "default")


def test_a_deployment_is_given_an_autoscaler(shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause")
    shop.run("autoscale", "deployment/web", "--min=2", "--max=5", "--cpu=60%")
    row = shop.rows("get", "hpa", "web")[0]
    assert (row["REFERENCE"], row["MINPODS"], row["MAXPODS"]) == ("Deployment/web", "2", "5")
    old = shop.json("get", "horizontalpodautoscalers.v1.autoscaling", "web")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60


def test_a_taint_evicts_and_the_pod_records_the_reason(shop: Kubectl):
    shop.run("run", "web", "--image=pause")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    node = shop.out("get", "pod", "web", "-o", "jsonpath={.spec.nodeName}")
    try:
        shop.run("taint", "node", node, "broken=disk:NoExecute")
        shop.run("wait", "--for=delete", "pod/web", "--timeout=60s")
        events = shop.events("web", "TaintManagerEviction")
        assert any(event["message"].startswith("Marking for deletion Pod") for event in events)
    finally:
        shop.run("taint", "node", node, "broken-")


def test_kinds_of_everyday_manifests_are_taken(shop: Kubectl):
    made = shop.out("apply", "-f", "-", input=EVERYDAY).splitlines()
    assert len(made) == EVERYDAY.count("kind: ")
    assert all(line.endswith(" created") for line in made)


def test_a_wrong_token_is_unauthorized(up: Up):
    up.run("get", "pods")  # discovery is cached then: where it fails, kubectl has other words
    assert "Unauthorized" in up.refusal("--token=wrong", "get", "pods")


QUANTITIES = {
    "no quantity": ("1.5x", "spec.containers[0].resources.requests"),
    "less than nothing": ("-1", "spec.containers[0].resources.requests[cpu]"),
}


@pytest.mark.parametrize(("quantity", "field"), QUANTITIES.values(), ids=QUANTITIES.keys())
@pytest.mark.parametrize("command", ["create", "apply"])
def test_an_impossible_quantity_is_refused_by_its_field(shop: Kubectl, command: str, quantity: str, field: str):
    assert field in shop.refusal(command, "-f", "-", input=A_POD % quantity)
    assert "NotFound" in shop.refusal("get", "pod", "bad")


@pytest.mark.parametrize("command", ["create", "apply"])
def test_an_unknown_field_is_refused_by_its_path(shop: Kubectl, command: str):
    text = (A_POD % "1").replace("resources", "resorces")
    assert 'unknown field "spec.containers[0].resorces"' in shop.refusal(command, "-f", "-", input=text)


def test_fields_that_cannot_change_are_refused(shop: Kubectl):
    shop.run("run", "web", "--image=pause")
    assert "Forbidden: pod updates may not change fields" in shop.refusal(
        "patch", "pod", "web", "-p", '{"spec": {"hostNetwork": true}}'
    )


def test_a_pod_for_a_scheduler_that_is_not_there_is_left_alone(shop: Kubectl):
    shop.run("run", "ghost", "--image=pause", '--overrides={"spec": {"schedulerName": "absent"}}')
    # A pod that came later has been scheduled, so this one has been seen and passed over.
    shop.run("run", "web", "--image=pause")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    assert shop.rows("get", "pod", "ghost")[0]["STATUS"] == "Pending"
    assert "conditions" not in shop.json("get", "pod", "ghost")["status"]
    assert shop.out("get", "events", "--field-selector=involvedObject.name=ghost", "-o", "name") == ""


def test_a_gated_pod_waits_until_its_gate_is_removed(shop: Kubectl):
    gates = '--overrides={"spec": {"schedulingGates": [{"name": "example.com/later"}]}}'
    shop.run("run", "gated", "--image=pause", gates)
    assert shop.rows("get", "pod", "gated")[0]["STATUS"] == "SchedulingGated"
    shop.run("patch", "pod", "gated", "--type=json", '-p=[{"op": "remove", "path": "/spec/schedulingGates"}]')
    shop.run("wait", "--for=condition=Ready", "pod/gated", "--timeout=60s")


def test_priority_is_taken_from_the_class(up: Up, shop: Kubectl):
    shop.run("run", "web", "--image=pause", '--overrides={"spec": {"priorityClassName": "system-node-critical"}}')
    assert shop.json("get", "pod", "web")["spec"]["priority"] == 2000001000
    refusal = shop.refusal("run", "bad", "--image=pause", '--overrides={"spec": {"priorityClassName": "none-such"}}')
    assert "none-such" in refusal
