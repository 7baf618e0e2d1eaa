"""Objects without the fields that the API defaults: some of each kind of the embedded server.

Pods name their service account: on the real control plane of these tests no controller makes accounts.
"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

CONTAINER: Document = {"name": "c", "image": "nginx"}
LABELS = {"app": "it"}
TEMPLATE: Document = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
RUN_ONCE: Document = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
SELECTOR = {"matchLabels": LABELS}
CLAIM_SPEC: Document = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
GPU = {"deviceClassName": "gpu.example.com"}


def a_manifest(api_version: str, kind: str, **fields: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, **fields}


def a_pod(**spec: Any) -> Document:
    return a_manifest("v1", "Pod", spec={"containers": [CONTAINER], "serviceAccountName": "default", **spec})


def a_container(**fields: Any) -> Document:
    return a_pod(containers=[CONTAINER | fields])


def a_volume(**source: Any) -> Document:
    return a_pod(volumes=[{"name": "v", **source}])


def a_workload(kind: str, **spec: Any) -> Document:
    return a_manifest("apps/v1", kind, spec={"selector": SELECTOR, "template": TEMPLATE, **spec})


def a_job(**spec: Any) -> Document:
    return a_manifest("batch/v1", "Job", spec={"template": RUN_ONCE, **spec})


def a_cron_job(**spec: Any) -> Document:
    return a_manifest(
        "batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": RUN_ONCE}}, **spec}
    )


def a_service(**spec: Any) -> Document:
    return a_manifest("v1", "Service", spec={"ports": [{"port": 80}], **spec})


def a_persistent_volume(**source: Any) -> Document:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    return a_manifest("v1", "PersistentVolume", spec=spec)


def a_device_claim(*requests: Document) -> Document:
    return a_manifest("resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": list(requests)}})


def a_slice(**device: Any) -> Document:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "gpu-0", **device}]}
    return a_manifest("resource.k8s.io/v1", "ResourceSlice", spec=spec)


def an_autoscaler(*metrics: Document, **spec: Any) -> Document:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, **spec}
    if metrics:
        spec["metrics"] = list(metrics)
    return a_manifest("autoscaling/v2", "HorizontalPodAutoscaler", spec=spec)


RULE = {"name": "r"}
BY_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
SHRINK = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
HTTP = {"port": 80}
CRD_NAMES = {"plural": "things", "kind": "Thing"}
OPEN: Document = {"openAPIV3Schema": {"type": "object"}}
CRD_VERSION: Document = {"name": "v1", "served": True, "storage": True, "schema": OPEN}

SHORT: dict[str, Document] = {
    # Pods
    "a pod": a_pod(),
    "a pod on the host's network": a_pod(hostNetwork=True, containers=[CONTAINER | {"ports": [{"containerPort": 80}]}]),
    "a pod with the old name of a field": a_pod(serviceAccountName="", serviceAccount="default"),
    "a pod with limits": a_container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
    "a pod with limits and some requests": a_container(
        resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    ),
    "a pod with quantities of another form": a_container(
        resources={"limits": {"cpu": 2, "memory": "1024Mi"}, "requests": {"cpu": "0.5", "memory": "1e9"}}
    ),
    "a pod with limits of an extended resource": a_container(resources={"limits": {"example.com/gpu": "1"}}),
    "a pod with limits as a whole": a_pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
    "a pod with requests as a whole": a_pod(
        resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        containers=[CONTAINER | {"resources": {"requests": {"cpu": "500m"}}}],
    ),
    "a pod with huge pages as a whole": a_pod(
        resources={"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}},
        containers=[CONTAINER | {"resources": {"limits": {"hugepages-2Mi": "2Mi", "memory": "1Gi"}}}],
    ),
    "a tagged image": a_container(image="nginx:1.27"),
    "the latest image": a_container(image="registry.example:5000/nginx:latest"),
    "an image of a registry with a port": a_container(image="registry.example:5000/nginx"),
    "an image by digest": a_container(image="nginx@sha256:" + "0" * 64),
    "ports": a_container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]),
    "a field of the pod as variable": a_container(
        env=[{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "E"}]
    ),
    "a resource as variable": a_container(
        env=[{"name": "N", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    ),
    "a probe by HTTP": a_container(livenessProbe={"httpGet": HTTP}, readinessProbe={"httpGet": HTTP | {"path": "/r"}}),
    "a probe by gRPC": a_container(startupProbe={"grpc": {"port": 80}}),
    "a probe by TCP": a_container(livenessProbe={"tcpSocket": {"port": 80}}),
    "a probe by a command": a_container(livenessProbe={"exec": {"command": ["true"]}, "timeoutSeconds": 0}),
    "hooks": a_container(lifecycle={"preStop": {"httpGet": HTTP}, "postStart": {"httpGet": HTTP}}),
    "a security context": a_pod(
        securityContext={"runAsUser": 1}, containers=[CONTAINER | {"securityContext": {"runAsNonRoot": True}}]
    ),
    "init containers": a_pod(
        initContainers=[
            {"name": "i", "image": "busybox"},
            {"name": "s", "image": "busybox", "restartPolicy": "Always", "readinessProbe": {"httpGet": HTTP}},
        ]
    ),
    "a directory as volume": a_volume(),
    "an empty directory": a_volume(emptyDir={}),
    "a config map as volume": a_volume(configMap={"name": "c"}),
    "a secret as volume": a_volume(secret={"secretName": "s"}),
    "fields as volume": a_volume(downwardAPI={"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}),
    "a projected volume": a_volume(
        projected={
            "sources": [
                {"serviceAccountToken": {"path": "t"}},
                {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ]
        }
    ),
    "a path of the host": a_volume(hostPath={"path": "/d"}),
    "an ephemeral volume": a_volume(ephemeral={"volumeClaimTemplate": {"spec": CLAIM_SPEC}}),
    "a volume by iSCSI": a_volume(iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}),
    "a volume of Ceph": a_volume(rbd={"monitors": ["1.2.3.4"], "image": "i"}),
    "a disk of Azure": a_volume(
        azureDisk={"diskName": "d", "diskURI": "https://account.blob.core.windows.net/container/disk.vhd"}
    ),
    "a volume of ScaleIO": a_volume(
        scaleIO={"gateway": "https://g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"}
    ),
    "an image as volume": a_volume(image={"reference": "nginx"}),
    "a claim as volume": a_volume(persistentVolumeClaim={"claimName": "c"}),
    "spread constraints": a_pod(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
        ]
    ),
    "tolerations": a_pod(tolerations=[{"key": "k", "operator": "Exists"}, {"key": "l", "value": "v"}]),
    "a toleration of everything": a_pod(tolerations=[{"operator": "Exists"}]),
    "host aliases and readiness gates": a_pod(
        hostAliases=[{"ip": "1.2.3.4", "hostnames": ["h"]}], readinessGates=[{"conditionType": "example.com/ready"}]
    ),
    "scheduling gates": a_pod(schedulingGates=[{"name": "example.com/wait"}]),
    "claims of devices": a_pod(
        resourceClaims=[{"name": "g", "resourceClaimTemplateName": "one-gpu"}],
        containers=[CONTAINER | {"resources": {"claims": [{"name": "g"}]}}],
    ),
    "empty lists and maps": a_pod(
        tolerations=[], nodeSelector={}, initContainers=[], affinity={}, volumes=[], imagePullSecrets=[]
    ),
    "nulls": a_pod(tolerations=None, nodeSelector=None, restartPolicy=None, terminationGracePeriodSeconds=None),
    "empty texts": a_pod(
        restartPolicy="",
        dnsPolicy="",
        schedulerName="",
        nodeName="",
        priorityClassName="",
        containers=[CONTAINER | {"imagePullPolicy": "", "ports": [{"containerPort": 80, "protocol": ""}]}],
    ),
    "amounts finer than thousandths": a_pod(
        overhead=None, containers=[CONTAINER | {"resources": {"requests": {"cpu": "0.1m", "memory": "100.5"}}}]
    ),
    "a whole pod whose containers request": a_pod(
        resources={"limits": {"cpu": "4", "memory": "4Gi"}},
        initContainers=[
            {"name": "i", "image": "i", "resources": {"requests": {"memory": "3Gi"}}},
            {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        ],
        containers=[
            CONTAINER | {"resources": {"requests": {"cpu": "1", "memory": "512Mi"}}},
            CONTAINER | {"name": "d", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        ],
    ),
    "a whole pod whose containers limit huge pages": a_pod(
        resources={"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        containers=[
            CONTAINER | {"resources": {"limits": {"hugepages-2Mi": "2Mi", "memory": "512Mi"}}},
            CONTAINER | {"name": "d", "resources": {"limits": {"hugepages-2Mi": "4Mi", "memory": "256M"}}},
        ],
    ),
    "a user namespace": a_pod(hostUsers=False),
    # Other core kinds
    "a node": a_manifest("v1", "Node"),
    "a node with odd capacity": a_manifest("v1", "Node", status={"capacity": {"cpu": "0.00001", "memory": "1e3"}}),
    "a node with capacity": a_manifest("v1", "Node", status={"capacity": {"cpu": "4", "pods": 110}}),
    "a tainted node": a_manifest(
        "v1", "Node", spec={"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}]}
    ),
    "a cordoned node": a_manifest("v1", "Node", spec={"unschedulable": True, "podCIDR": "10.0.0.0/24"}),
    "a namespace": a_manifest("v1", "Namespace"),
    "a service": a_service(),
    "a service with a selector and two ports": a_service(
        selector=LABELS,
        ports=[{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 53, "protocol": "UDP"}],
    ),
    "a service with empty texts": a_service(
        type="", sessionAffinity="", ports=[{"port": 80, "protocol": "", "targetPort": 0}]
    ),
    "a headless service": a_service(clusterIP="None"),
    "a headless service without ports": a_manifest("v1", "Service", spec={"clusterIP": "None", "selector": LABELS}),
    "a service of a node port": a_service(type="NodePort"),
    "a service behind a balancer": a_service(type="LoadBalancer"),
    "a service that remembers clients for a time": a_service(
        sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}}
    ),
    "a service with a session timeout and no affinity": a_service(
        sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}}
    ),
    "a service that remembers clients": a_service(sessionAffinity="ClientIP"),
    "an external name": a_manifest("v1", "Service", spec={"type": "ExternalName", "externalName": "example.com"}),
    "a service with external addresses": a_service(externalIPs=["1.2.3.4"]),
    "a local service": a_service(type="LoadBalancer", externalTrafficPolicy="Local"),
    "endpoints": a_manifest("v1", "Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]),
    "a config map": a_manifest("v1", "ConfigMap", data={"a": "b"}),
    "an empty config map": a_manifest("v1", "ConfigMap"),
    "a secret": a_manifest("v1", "Secret", stringData={"a": "b"}),
    "an empty secret": a_manifest("v1", "Secret"),
    "a service account": a_manifest("v1", "ServiceAccount"),
    "a volume of the host": a_persistent_volume(hostPath={"path": "/d"}),
    "a volume by CSI": a_persistent_volume(csi={"driver": "d.example.com", "volumeHandle": "h"}),
    "a volume by iSCSI of the cluster": a_persistent_volume(
        iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}
    ),
    "a local volume": a_persistent_volume(
        local={"path": "/d"},
        nodeAffinity={
            "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]}
        },
    ),
    "a claimed volume": a_persistent_volume(hostPath={"path": "/d"}, claimRef={"name": "c", "namespace": "default"}),
    "a claim of a volume": a_manifest("v1", "PersistentVolumeClaim", spec=CLAIM_SPEC),
    "a claim from a snapshot": a_manifest(
        "v1",
        "PersistentVolumeClaim",
        spec=CLAIM_SPEC
        | {"dataSource": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}},
    ),
    "a copied claim": a_manifest(
        "v1",
        "PersistentVolumeClaim",
        spec=CLAIM_SPEC | {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "s"}},
    ),
    "a volume of Ceph of the cluster": a_persistent_volume(rbd={"monitors": ["1.2.3.4"], "image": "i"}),
    "a volume of ScaleIO of the cluster": a_persistent_volume(
        scaleIO={"gateway": "https://g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"}
    ),
    "a claim finer than thousandths": a_manifest(
        "v1",
        "PersistentVolumeClaim",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1000000.0001"}}},
    ),
    "a replication controller": a_manifest("v1", "ReplicationController", spec={"template": TEMPLATE}),
    "a pod template": a_manifest("v1", "PodTemplate", template=TEMPLATE),
    "a quota": a_manifest("v1", "ResourceQuota", spec={"hard": {"pods": "1"}}),
    "limits of containers": a_manifest(
        "v1", "LimitRange", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}
    ),
    "default limits": a_manifest(
        "v1", "LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}
    ),
    "limits of pods": a_manifest("v1", "LimitRange", spec={"limits": [{"type": "Pod", "max": {"cpu": "2"}}]}),
    # Workloads
    "a deployment": a_workload("Deployment"),
    "a deployment that recreates": a_workload("Deployment", strategy={"type": "Recreate"}),
    "a deployment that names its surge": a_workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 1}}),
    "a paused deployment": a_workload("Deployment", replicas=0, paused=True),
    "a deployment on the host's network": a_workload(
        "Deployment",
        template={
            "metadata": {"labels": LABELS},
            "spec": {"hostNetwork": True, "containers": [CONTAINER | {"ports": [{"containerPort": 80}]}]},
        },
    ),
    "workloads with empty texts": a_workload("Deployment", strategy={"type": ""}),
    "a stateful set with empty texts": a_workload(
        "StatefulSet", podManagementPolicy="", updateStrategy={"type": ""}, serviceName=""
    ),
    "a daemon set with empty texts": a_workload("DaemonSet", updateStrategy={"type": ""}),
    "a deployment with limits": a_workload(
        "Deployment",
        template={
            "metadata": {"labels": LABELS},
            "spec": {"containers": [CONTAINER | {"resources": {"limits": {"cpu": "1"}}}]},
        },
    ),
    "a replica set": a_workload("ReplicaSet"),
    "a stateful set": a_workload("StatefulSet", serviceName="s"),
    "a stateful set with claims": a_workload(
        "StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": CLAIM_SPEC}]
    ),
    "a stateful set that updates on deletion": a_workload("StatefulSet", updateStrategy={"type": "OnDelete"}),
    "a stateful set with a partition": a_workload(
        "StatefulSet", updateStrategy={"rollingUpdate": {"partition": 1}}, ordinals={}
    ),
    "a daemon set": a_workload("DaemonSet"),
    "a daemon set that updates on deletion": a_workload("DaemonSet", updateStrategy={"type": "OnDelete"}),
    "a daemon set with a surge": a_workload(
        "DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    ),
    "a revision": a_manifest("apps/v1", "ControllerRevision", revision=1, data={"a": 1}),
    "a job": a_job(),
    "a job with completions": a_job(completions=2),
    "a parallel job": a_job(parallelism=2),
    "an indexed job": a_job(completionMode="Indexed", completions=2),
    "a job with a backoff by index": a_job(completionMode="Indexed", completions=2, backoffLimitPerIndex=1),
    "a job with a failure policy": a_job(
        podFailurePolicy={
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
            ]
        }
    ),
    "a suspended job": a_job(suspend=True, ttlSecondsAfterFinished=5),
    "a cron job": a_cron_job(),
    "a cron job with a template of labels": a_cron_job(
        jobTemplate={"metadata": {"labels": LABELS}, "spec": {"completions": 2, "template": RUN_ONCE}}
    ),
    # Policy, scheduling, autoscaling
    "a budget": a_manifest("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": SELECTOR}),
    "a budget of nothing": a_manifest("policy/v1", "PodDisruptionBudget"),
    "a priority class": a_manifest("scheduling.k8s.io/v1", "PriorityClass", value=10),
    "a priority class without value": a_manifest("scheduling.k8s.io/v1", "PriorityClass"),
    "an autoscaler": an_autoscaler(),
    "an autoscaler by CPU": an_autoscaler(BY_CPU, minReplicas=2),
    "an autoscaler with behavior": an_autoscaler(BY_CPU, behavior={"scaleDown": {"policies": SHRINK}}),
    "an autoscaler with empty behavior": an_autoscaler(behavior={"scaleUp": {}, "scaleDown": {}}),
    "an old autoscaler": a_manifest(
        "autoscaling/v1",
        "HorizontalPodAutoscaler",
        spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "it"}, "maxReplicas": 3},
    ),
    # Storage
    "a storage class": a_manifest("storage.k8s.io/v1", "StorageClass", provisioner="p.example.com"),
    "a CSI node": a_manifest(
        "storage.k8s.io/v1", "CSINode", spec={"drivers": [{"name": "d.example.com", "nodeID": "n"}]}
    ),
    "a CSI driver": a_manifest("storage.k8s.io/v1", "CSIDriver", spec={}),
    "a CSI driver with some fields": a_manifest(
        "storage.k8s.io/v1", "CSIDriver", spec={"attachRequired": False, "tokenRequests": [{"audience": "a"}]}
    ),
    "a storage capacity": a_manifest("storage.k8s.io/v1", "CSIStorageCapacity", storageClassName="s", capacity="1Gi"),
    "an attachment": a_manifest(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        spec={"attacher": "a.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    ),
    # Devices
    "a device claim": a_device_claim(RULE | {"exactly": GPU}),
    "a device claim of alternatives": a_device_claim(
        RULE | {"firstAvailable": [{"name": "a", **GPU, "count": 2}, {"name": "b", **GPU, "allocationMode": "All"}]}
    ),
    "a device claim with tolerations": a_device_claim(
        RULE | {"exactly": GPU | {"tolerations": [{"key": "k", "value": "v"}, {"operator": "Exists"}]}}
    ),
    "a device claim of an unknown mode": a_device_claim(RULE | {"exactly": GPU | {"allocationMode": "Some"}}),
    "a device claim of too few": a_device_claim(RULE | {"exactly": GPU | {"count": -1}}),
    "a device claim of all and some": a_device_claim(RULE | {"exactly": GPU | {"allocationMode": "All", "count": 2}}),
    "a device claim without class": a_device_claim(RULE | {"exactly": {}}),
    "a device claim without form": a_device_claim(RULE),
    "a device claim of two forms": a_device_claim(
        RULE | {"exactly": GPU, "firstAvailable": [{"name": "a", **GPU}]},
    ),
    "a device claim without a name of its request": a_device_claim({"exactly": GPU}),
    "a device claim with a bad name of its request": a_device_claim({"name": "A_", "exactly": GPU}),
    "a device claim with a bad operator": a_device_claim(
        RULE | {"exactly": GPU | {"tolerations": [{"key": "k", "operator": "Like"}]}}
    ),
    "a device claim of nothing": a_manifest("resource.k8s.io/v1", "ResourceClaim"),
    "a template of device claims": a_manifest(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        spec={"spec": {"devices": {"requests": [RULE | {"exactly": GPU}]}}},
    ),
    "a slice": a_slice(),
    "a slice with tainted devices": a_slice(taints=[{"key": "k", "effect": "NoSchedule"}]),
    "a slice with capacity and attributes": a_slice(
        capacity={"memory": {"value": "1024Mi"}}, attributes={"model": {"string": "a"}, "n": {"int": 1}}
    ),
    "a device class": a_manifest(
        "resource.k8s.io/v1", "DeviceClass", spec={"selectors": [{"cel": {"expression": "true"}}]}
    ),
    # The rest
    "a role": a_manifest(
        "rbac.authorization.k8s.io/v1", "Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    ),
    "a role without rules": a_manifest("rbac.authorization.k8s.io/v1", "Role"),
    "a cluster role": a_manifest("rbac.authorization.k8s.io/v1", "ClusterRole", rules=[]),
    "an aggregated role": a_manifest(
        "rbac.authorization.k8s.io/v1", "ClusterRole", aggregationRule={"clusterRoleSelectors": [SELECTOR]}
    ),
    "a binding of a role": a_manifest(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        roleRef={"kind": "Role", "name": "r"},
        subjects=[{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "default"}],
    ),
    "a binding of a cluster role": a_manifest(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        roleRef={"kind": "ClusterRole", "name": "r"},
        subjects=[{"kind": "Group", "name": "g"}],
    ),
    "a lease": a_manifest("coordination.k8s.io/v1", "Lease"),
    "a lease with a holder": a_manifest(
        "coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "h", "leaseDurationSeconds": 15}
    ),
    "an endpoint slice": a_manifest(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        addressType="IPv4",
        endpoints=[{"addresses": ["1.2.3.4"]}],
        ports=[{"port": 80}, {"name": "p"}],
    ),
    "a network policy": a_manifest("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}}),
    "a network policy for what leaves": a_manifest(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        spec={"podSelector": {}, "egress": [{"ports": [{"port": 80}]}], "ingress": [{"ports": [{"protocol": "UDP"}]}]},
    ),
    "an ingress": a_manifest(
        "networking.k8s.io/v1",
        "Ingress",
        spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    ),
    "an ingress class": a_manifest("networking.k8s.io/v1", "IngressClass", spec={"controller": "example.com/c"}),
    "an ingress class with parameters": a_manifest(
        "networking.k8s.io/v1",
        "IngressClass",
        spec={"controller": "example.com/c", "parameters": {"kind": "K", "name": "n"}},
    ),
    "a runtime class": a_manifest("node.k8s.io/v1", "RuntimeClass", handler="h"),
    "a runtime class with tolerations": a_manifest(
        "node.k8s.io/v1", "RuntimeClass", handler="h", scheduling={"tolerations": [{"key": "k", "operator": "Exists"}]}
    ),
    "a custom resource definition": a_manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        metadata={"name": "things.example.com"},
        spec={"group": "example.com", "scope": "Namespaced", "names": CRD_NAMES, "versions": [CRD_VERSION]},
    ),
    "a custom resource definition with a webhook": a_manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        metadata={"name": "things.converted.example.com"},
        spec={
            "group": "converted.example.com",
            "scope": "Cluster",
            "names": CRD_NAMES,
            "versions": [CRD_VERSION],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"name": "s", "namespace": "default"}},
                },
            },
        },
    ),
    "an event": a_manifest("v1", "Event", involvedObject={"namespace": "default"}, reason="R", message="M"),
}
