"""A real cluster, printed by the real kubectl, goes on in an embedded one: nothing is lost, moved or started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.programs import Program, private_home
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.control_plane import POWERLESS, ControlPlane
from tests.real_kubectl.conftest import Kubectl, Up, mooring_up

from mooring.objects import Pod
from mooring.snapshots import read_snapshot

OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: green}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: shop-high}
value: 1000
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: seller, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: seller
      priorityClassName: shop-high
      containers: [{name: app, image: "nginx:1.27", resources: {requests: {cpu: 100m}}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: agent}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: simulated.mooring.dev
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: shop}
spec: {containers: [{name: app, image: "nginx:1.27", resources: {requests: {cpu: "100"}}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: shop}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: report, namespace: shop}
spec:
  completions: 1
  template:
    metadata: {annotations: {mooring.dev/run-seconds: "0"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: yearly, namespace: shop}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, behavior: {scaleDown: {}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: sizes, namespace: shop}
spec: {limits: [{type: Container, min: {cpu: 1m}}]}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop}
stringData: {a: b}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandbox}
handler: sandbox
overhead: {podFixed: {cpu: 10m}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: racks, singular: rack, kind: Rack}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {height: {type: integer}}}
          status: {type: object, properties: {used: {type: integer}}}
"""
RACK = "{apiVersion: example.com/v1, kind: Rack, metadata: {name: r1, namespace: shop}, spec: {height: 42}}"
# Kinds that users print together, and everything that the server can list.
KINDS = (
    "crd,nodes,pods,deployments,replicasets,statefulsets,daemonsets,services,pvc,pv,sc,pdb,priorityclasses,resourceclaims,"
    "racks.example.com"
)
EVERYTHING = ("api-resources", "--verbs=list", "--output=name")


def _filled(cluster: Cluster) -> None:
    cluster.nodes(2, "--controllers")
    cluster.scheduler()
    kubectl = cluster.kubectl.in_namespace("shop")
    kubectl.run("apply", "-f", "-", input=OBJECTS)
    kubectl.run("wait", "--for=condition=Established", "crd/racks.example.com")
    kubectl.run("apply", "-f", "-", input=RACK)
    kubectl.run("patch", "rack", "r1", "--subresource=status", "--type=merge", '-p={"status": {"used": 7}}')
    kubectl.run("rollout", "status", "deployment/web", "--timeout=90s")
    kubectl.run("rollout", "status", "statefulset/db", "--timeout=90s")
    kubectl.run("rollout", "status", "daemonset/agent", "--timeout=90s")
    kubectl.run("wait", "--for=condition=Complete", "job/report", "--timeout=90s")
    kubectl.run("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=90s")
    kubectl.shows("PodScheduled", "get", "pod", "huge", "-o", "yaml")


@pytest.fixture(scope="module")
def full(control_plane: ControlPlane) -> Iterator[Cluster]:
    """One for all: where no controller manager runs, a namespace is never gone."""
    with private_home() as home, Cluster(control_plane, home) as cluster:
        try:
            _filled(cluster)
            yield cluster
        finally:
            kinds = (
                "deployments,statefulsets,daemonsets,jobs,cronjobs,hpa,ingresses,limitranges,secrets,pvc,pdb,services"
            )
            kinds += ",resourceclaims,networkpolicies"
            cluster.kubectl.run("delete", kinds, "--all", "-n", "shop", "--wait=false", check=False)
            cluster.kubectl.run(
                "delete",
                "crd/racks.example.com",
                "sc/fast",
                "deviceclass/gpu.example.com",
                "runtimeclass/sandbox",
                check=False,
            )
            cluster.kubectl.run("delete", "pv", "--all", "--wait=false", check=False)
            cluster.wipe()


def _pods(kubectl: Kubectl) -> dict[str, tuple[Any, ...]]:
    """What must not change of a pod."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            pod["metadata"]["creationTimestamp"],
            pod["spec"].get("nodeName"),
            pod["spec"].get("priority"),
            pod["status"]["phase"],
            pod["status"].get("podIP"),
            pod["status"].get("startTime"),
        )
        for pod in kubectl.json("get", "pods", "-n", "shop")["items"]
    }


def _settled(up: Up) -> None:
    """The controllers have looked at everything: what they start for a new object is done."""
    up.run("create", "deployment", "probe", "--image=nginx")
    up.run("rollout", "status", "deployment/probe", "--timeout=90s")
    up.run("delete", "deployment", "probe", "--wait=true", "--cascade=foreground")


def test_every_kind_of_a_real_cluster_is_restored_and_goes_on(full: Cluster):
    names = [name for name in full.kubectl.out(*EVERYTHING).split() if not name.startswith("componentstatuses")]
    dump = full.kubectl.out("get", ",".join(names), "--all-namespaces", "--output=json")
    before = _pods(full.kubectl)
    assert len(before) == 9

    with mooring_up("--cluster=dump.json", files={"dump.json": dump}) as up:
        _settled(up)
        assert _pods(up) == before
        assert up.rows("get", "deployment", "web", "-n", "shop")[0]["READY"] == "3/3"
        assert up.json("get", "ns", "shop")["metadata"]["labels"]["team"] == "green"
        assert up.json("get", "job", "report", "-n", "shop")["status"]["succeeded"] == 1
        assert up.json("get", "pvc", "data", "-n", "shop")["status"]["phase"] == "Bound"
        rack = up.json("get", "rack", "r1", "-n", "shop")
        assert (rack["spec"], rack["status"]) == ({"height": 42}, {"used": 7})
        skipped = up.mooring.mentions("the embedded API server does not serve their kind")
        assert "apiregistration.k8s.io/v1 APIService" in skipped
        assert "Pod" not in skipped

        # What was pending is still tried, and what controllers own they go on to own.
        up.shows("Insufficient cpu", "describe", "pod", "huge", "-n", "shop")
        up.run("scale", "deployment/web", "-n", "shop", "--replicas=4")
        up.run("rollout", "status", "deployment/web", "-n", "shop", "--timeout=90s")
        after = _pods(up)
        assert {name: after[name] for name in before} == before
        assert len(after) == 10

        # A second round: what the embedded cluster prints is as good.
        again = up.out("get", KINDS, "--all-namespaces", "--output=yaml")
    with mooring_up("--cluster=again.yaml", files={"again.yaml": again}) as up:
        _settled(up)
        assert _pods(up) == after
        assert up.json("get", "rack", "r1", "-n", "shop")["status"] == {"used": 7}


def _settled_pods(up: Up) -> dict[str, tuple[Any, ...]]:
    _settled(up)
    return _without_addresses(_pods(up))


def _without_addresses(pods: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """A snapshot has no addresses: the kubelets assign others."""
    return {name: (*about[:5], about[6]) for name, about in pods.items()}


def _documented_role() -> str:
    page = (Path(__file__).parents[2] / "docs/snapshots.md").read_text(encoding="utf-8")
    return page.partition("```yaml\n")[2].partition("```")[0]


def test_a_snapshot_by_a_user_with_the_documented_role_goes_on(full: Cluster):
    full.kubectl.run("apply", "-f", "-", input=_documented_role())
    bind = ("clusterrolebinding", "snapshots", "--clusterrole=mooring-snapshot", f"--user={POWERLESS}")
    full.kubectl.run("create", *bind)
    kubeconfig = full.control_plane.kubeconfig(POWERLESS)
    try:
        with Program("snapshot", "it.snapshot", f"--kubeconfig={kubeconfig}", home=full.home) as program:
            assert program.ended() == 0, program.written()
    finally:
        full.kubectl.run("delete", "clusterrolebinding/snapshots", "clusterrole/mooring-snapshot")
    path = full.home / "it.snapshot"
    assert read_snapshot(path).header.left_out == []
    before = _without_addresses(_pods(full.kubectl))
    with mooring_up(f"--cluster={path}") as up:
        assert _settled_pods(up) == before
        up.shows("Insufficient cpu", "describe", "pod", "huge", "-n", "shop")
        up.run("scale", "deployment/web", "-n", "shop", "--replicas=4")
        up.run("rollout", "status", "deployment/web", "-n", "shop", "--timeout=90s")
        after = _without_addresses(_pods(up))
        assert {name: after[name] for name in before} == before

    arguments = ("hidden.snapshot", "--anonymize", "--from=it.snapshot")
    with Program("snapshot", *arguments, home=full.home) as program:
        assert program.ended() == 0, program.written()
    hidden = full.home / "hidden.snapshot"
    placed = {pod.uid: pod.spec.node_name for pod in read_snapshot(hidden).objects(Pod)}
    with mooring_up(f"--cluster={hidden}") as up:
        _settled(up)
        pods = up.json("get", "pods", "--all-namespaces")["items"]
        assert {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in pods} == placed


def test_a_snapshot_without_rights_names_the_rule(full: Cluster):
    kubeconfig = full.control_plane.kubeconfig(POWERLESS)
    with Program("snapshot", "no.snapshot", f"--kubeconfig={kubeconfig}", home=full.home) as program:
        assert program.ended() == 1
    assert "a snapshot needs pods, which cannot be listed" in program.written()
    assert '{apiGroups: [""], resources: ["pods"], verbs: ["list"]}' in program.written()
    assert not (full.home / "no.snapshot").exists()


def test_nodes_and_pods_alone_are_enough(full: Cluster):
    """Their accounts, priority classes, namespaces and owners are not in the file."""
    dump = full.kubectl.out("get", "nodes,pods", "--all-namespaces", "--output=yaml")
    before = _pods(full.kubectl)
    with mooring_up("--cluster=dump.yaml", files={"dump.yaml": dump}) as up:
        _settled(up)
        assert _pods(up) == before
        owner = up.json("get", "pods", "-n", "shop", "-l", "app=web")["items"][0]["metadata"]["ownerReferences"][0]
        assert owner["kind"] == "ReplicaSet"
        assert up.rows("get", "nodes")[0]["STATUS"] == "Ready"


def test_a_deployment_without_its_replica_sets_starts_no_pod_twice(full: Cluster):
    dump = full.kubectl.out("get", "nodes,pods,deployments", "--all-namespaces", "--output=yaml")
    before = _pods(full.kubectl)
    with mooring_up("--cluster=dump.yaml", files={"dump.yaml": dump}) as up:
        _settled(up)
        assert _pods(up) == before
