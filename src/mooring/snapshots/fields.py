"""Which fields of each kind a snapshot keeps, and what each of them means to `--anonymize`.

The tables are lists of what is kept: a field that is not here is not written, so that environment variables, commands,
probes, messages, addresses and whatever Kubernetes adds later stay in the cluster. They hold what scheduling reads and
what an API server requires of an object besides; tests compare them with `mooring.objects`.

A mapping is a table of fields, a list of one table its items; `Entries` is a mapping with keys of the user's choice,
`Sourced` an item that is kept only if more than its name is left; a `Leaf` is kept whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Table: TypeAlias = "dict[str, Any]"
"""Field → Table, [Table], Entries, Sourced or Leaf."""


@dataclass(frozen=True)
class Leaf:
    """A value, and how it is anonymized: `how` names a method of the anonymizer, `role` is part of a replacement."""

    how: str
    role: str = ""


@dataclass(frozen=True)
class Entries:
    """Keys of the user's choice, all with values of one form."""

    key: Leaf
    value: Any


class Sourced(dict[str, Any]):
    """A volume: without a source that scheduling or a drain reads it is left out."""


def name(role: str) -> Leaf:
    """A name or another identifier: nothing but its equality and its order matters."""
    return Leaf("name", role)


PLAIN = Leaf("plain")
"""Numbers, quantities, times, and words that Kubernetes defines."""
UID, KEY, DRIVER, HANDLE, IP = Leaf("uid"), Leaf("key"), Leaf("driver"), Leaf("handle"), Leaf("ip")
POD_IMAGE, NODE_IMAGE = Leaf("pod_image"), Leaf("node_image")
REQUEST = Leaf("request")
"""A request of a device claim, or `request/subrequest`."""
LABELS, ANNOTATIONS = Leaf("labels"), Leaf("annotations")
REQUIREMENT = Leaf("requirement")
"""key, operator and values."""
TAINT = Leaf("taint")
"""A taint or a toleration."""
ATTRIBUTES, CEL = Leaf("attributes"), Leaf("cel")
OWNER = Leaf("owner")
WHOLE = Leaf("whole")
"""Of a custom kind: every field, and any text in it may be a name."""

NODE, POD, NAMESPACE, CLAIM = name("node"), name("pod"), name("namespace"), name("claim")
VOLUME, STORAGE_CLASS, CONTAINER_NAME = name("volume"), name("class"), name("container")

ANNOTATION_VALUES: dict[str, Leaf] = {
    "pv.kubernetes.io/bind-completed": PLAIN,
    "pv.kubernetes.io/bound-by-controller": PLAIN,
    "pv.kubernetes.io/provisioned-by": DRIVER,
    "volume.kubernetes.io/selected-node": NODE,
    "volume.kubernetes.io/storage-provisioner": DRIVER,
    "volume.beta.kubernetes.io/storage-provisioner": DRIVER,
    "volume.beta.kubernetes.io/storage-class": STORAGE_CLASS,
    "storage.alpha.kubernetes.io/migrated-plugins": PLAIN,
    "storageclass.kubernetes.io/is-default-class": PLAIN,
    "resource.kubernetes.io/extended-resource-claim": PLAIN,
    "resource.kubernetes.io/pod-claim-name": name("claim"),
    "controller.kubernetes.io/pod-deletion-cost": PLAIN,
    "deployment.kubernetes.io/revision": PLAIN,
    "deployment.kubernetes.io/desired-replicas": PLAIN,
    "deployment.kubernetes.io/max-replicas": PLAIN,
    "deprecated.daemonset.template.generation": PLAIN,
    "batch.kubernetes.io/job-completion-index": PLAIN,
    "kubernetes.io/config.mirror": name("mirror"),
    "api-approved.kubernetes.io": PLAIN,
    "mooring.dev/run-seconds": PLAIN,
    "mooring.dev/simulated": PLAIN,
    "mooring.dev/template": PLAIN,
}
"""The annotations that scheduling, drains or the simulated controllers read; others are left out."""

OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def metadata(own_name: Leaf) -> Table:
    return {
        "name": own_name,
        "namespace": NAMESPACE,
        "uid": UID,
        "generation": PLAIN,
        "creationTimestamp": PLAIN,
        "deletionTimestamp": PLAIN,
        "deletionGracePeriodSeconds": PLAIN,
        "labels": LABELS,
        "annotations": ANNOTATIONS,
        "ownerReferences": [OWNER],
        "finalizers": [KEY],
    }


SELECTOR: Table = {"matchLabels": LABELS, "matchExpressions": [REQUIREMENT]}
NODE_TERM: Table = {"matchExpressions": [REQUIREMENT], "matchFields": [Leaf("field_requirement")]}
NODE_SELECTOR: Table = {"nodeSelectorTerms": [NODE_TERM]}
CONDITION: Table = {
    "type": Leaf("condition"),
    "status": PLAIN,
    "reason": PLAIN,
    "lastTransitionTime": PLAIN,
    "lastProbeTime": PLAIN,
    "lastUpdateTime": PLAIN,
    "lastHeartbeatTime": PLAIN,
    "observedGeneration": PLAIN,
}
"""Without its message, which often has names in it."""

# Pods

RESOURCES: Table = {
    "requests": PLAIN,
    "limits": PLAIN,
    "claims": [{"name": CLAIM, "request": REQUEST}],
}
SECURITY_CONTEXT: Table = {"seccompProfile": {"type": PLAIN, "localhostProfile": name("seccomp")}}
"""What SySched reads."""
CONTAINER: Table = {
    "name": CONTAINER_NAME,
    "image": POD_IMAGE,
    "resources": RESOURCES,
    "ports": [{"containerPort": PLAIN, "hostPort": PLAIN, "hostIP": IP, "protocol": PLAIN}],
    "restartPolicy": PLAIN,
    "securityContext": SECURITY_CONTEXT,
    "restartPolicyRules": [{"action": PLAIN, "exitCodes": PLAIN}],
}
CLAIM_SPEC: Table = {
    "accessModes": PLAIN,
    "selector": SELECTOR,
    "resources": RESOURCES,
    "volumeName": VOLUME,
    "storageClassName": STORAGE_CLASS,
    "volumeMode": PLAIN,
    "volumeAttributesClassName": STORAGE_CLASS,
}
DISKS: Table = {
    "awsElasticBlockStore": {"volumeID": HANDLE, "partition": PLAIN, "readOnly": PLAIN},
    "gcePersistentDisk": {"pdName": HANDLE, "partition": PLAIN, "readOnly": PLAIN},
    "azureDisk": {"diskName": HANDLE, "diskURI": HANDLE, "kind": PLAIN, "readOnly": PLAIN},
    "cinder": {"volumeID": HANDLE, "readOnly": PLAIN},
    "portworxVolume": {"volumeID": HANDLE, "readOnly": PLAIN},
    "vsphereVolume": {"volumePath": HANDLE},
}
POD_VOLUME = Sourced(
    DISKS,
    name=VOLUME,
    emptyDir={},
    persistentVolumeClaim={"claimName": CLAIM, "readOnly": PLAIN},
    ephemeral={"volumeClaimTemplate": {"metadata": {"labels": LABELS, "annotations": ANNOTATIONS}, "spec": CLAIM_SPEC}},
    image={"reference": POD_IMAGE, "pullPolicy": PLAIN},
    azureFile={"shareName": HANDLE, "secretName": name("secret"), "readOnly": PLAIN},
    rbd={"monitors": [HANDLE], "pool": HANDLE, "image": HANDLE, "readOnly": PLAIN},
    iscsi={"targetPortal": HANDLE, "iqn": HANDLE, "lun": PLAIN, "readOnly": PLAIN},
)
AFFINITY_TERM: Table = {
    "labelSelector": SELECTOR,
    "namespaces": [NAMESPACE],
    "namespaceSelector": SELECTOR,
    "topologyKey": KEY,
    "matchLabelKeys": [KEY],
    "mismatchLabelKeys": [KEY],
}
POD_AFFINITY: Table = {
    "requiredDuringSchedulingIgnoredDuringExecution": [AFFINITY_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": PLAIN, "podAffinityTerm": AFFINITY_TERM}],
}
GROUP, GROUP_WORKLOAD, GROUP_TEMPLATE = name("group"), name("workload"), name("grouptemplate")

POD_SPEC: Table = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "nodeName": NODE,
    "schedulerName": PLAIN,
    "nodeSelector": LABELS,
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": PLAIN, "preference": NODE_TERM}],
        },
        "podAffinity": POD_AFFINITY,
        "podAntiAffinity": POD_AFFINITY,
    },
    "tolerations": [TAINT],
    "topologySpreadConstraints": [
        {
            "maxSkew": PLAIN,
            "topologyKey": KEY,
            "whenUnsatisfiable": PLAIN,
            "labelSelector": SELECTOR,
            "minDomains": PLAIN,
            "nodeAffinityPolicy": PLAIN,
            "nodeTaintsPolicy": PLAIN,
            "matchLabelKeys": [KEY],
        }
    ],
    "priority": PLAIN,
    "priorityClassName": name("priority"),
    "preemptionPolicy": PLAIN,
    "overhead": PLAIN,
    "resources": RESOURCES,
    "schedulingGates": [{"name": KEY}],
    "hostNetwork": PLAIN,
    "hostUsers": PLAIN,
    "os": PLAIN,
    "securityContext": SECURITY_CONTEXT,
    "restartPolicy": PLAIN,
    "runtimeClassName": name("runtime"),
    "activeDeadlineSeconds": PLAIN,
    "volumes": [POD_VOLUME],
    "resourceClaims": [
        {"name": CLAIM, "resourceClaimName": CLAIM, "resourceClaimTemplateName": CLAIM},
    ],
    "terminationGracePeriodSeconds": PLAIN,
    "schedulingGroup": {"podGroupName": GROUP},
}
CONTAINER_STATUS: Table = {
    "name": CONTAINER_NAME,
    "ready": PLAIN,
    "started": PLAIN,
    "restartCount": PLAIN,
    "image": POD_IMAGE,
    "allocatedResources": PLAIN,
    "resources": RESOURCES,
}
POD_STATUS: Table = {
    "phase": PLAIN,
    "observedGeneration": PLAIN,
    "conditions": [CONDITION],
    "nominatedNodeName": NODE,
    "startTime": PLAIN,
    "qosClass": PLAIN,
    "containerStatuses": [CONTAINER_STATUS],
    "initContainerStatuses": [CONTAINER_STATUS],
    "allocatedResources": PLAIN,
    "resources": RESOURCES,
    "resourceClaimStatuses": [{"name": CLAIM, "resourceClaimName": CLAIM}],
    "extendedResourceClaimStatus": {
        "requestMappings": [{"containerName": CONTAINER_NAME, "resourceName": PLAIN, "requestName": REQUEST}],
        "resourceClaimName": CLAIM,
    },
}
POD_FIELDS: Table = {"metadata": metadata(POD), "spec": POD_SPEC, "status": POD_STATUS}
TEMPLATE: Table = {"metadata": {"labels": LABELS, "annotations": ANNOTATIONS}, "spec": POD_SPEC}

# The cluster

NODE_FIELDS: Table = {
    "metadata": metadata(NODE),
    "spec": {"unschedulable": PLAIN, "taints": [TAINT], "providerID": name("provider")},
    "status": {
        "capacity": PLAIN,
        "allocatable": PLAIN,
        "conditions": [CONDITION],
        "images": [{"names": [NODE_IMAGE], "sizeBytes": PLAIN}],
        "declaredFeatures": PLAIN,
        "nodeInfo": {"kubeletVersion": PLAIN, "operatingSystem": PLAIN, "architecture": PLAIN},
    },
}
NAMESPACE_FIELDS: Table = {
    "metadata": metadata(NAMESPACE),
    "spec": {"finalizers": [KEY]},
    "status": {"phase": PLAIN},
}
PRIORITY_CLASS_FIELDS: Table = {
    "metadata": metadata(name("priority")),
    "value": PLAIN,
    "globalDefault": PLAIN,
    "preemptionPolicy": PLAIN,
}
RUNTIME_CLASS_FIELDS: Table = {
    "metadata": metadata(name("runtime")),
    "handler": name("runtime"),
    "overhead": PLAIN,
    "scheduling": {"nodeSelector": LABELS, "tolerations": [TAINT]},
}
_OF_A_GROUP: Table = {
    "schedulingPolicy": {"basic": PLAIN, "gang": {"minCount": PLAIN}},
    "schedulingConstraints": {"topology": [{"key": KEY}]},
    "resourceClaims": [{"name": CLAIM, "resourceClaimName": CLAIM, "resourceClaimTemplateName": CLAIM}],
    "disruptionMode": PLAIN,
    "priorityClassName": name("priority"),
    "priority": PLAIN,
}
POD_GROUP_FIELDS: Table = {
    "metadata": metadata(GROUP),
    "spec": {
        "podGroupTemplateRef": {"workload": {"workloadName": GROUP_WORKLOAD, "podGroupTemplateName": GROUP_TEMPLATE}},
        **_OF_A_GROUP,
    },
    "status": {
        "conditions": [CONDITION],
        "resourceClaimStatuses": [{"name": CLAIM, "resourceClaimName": CLAIM}],
    },
}
GROUP_WORKLOAD_FIELDS: Table = {
    "metadata": metadata(GROUP_WORKLOAD),
    "spec": {
        "controllerRef": {"apiGroup": PLAIN, "kind": PLAIN, "name": name("job")},
        "podGroupTemplates": [{"name": GROUP_TEMPLATE, **_OF_A_GROUP}],
    },
}
BUDGET_FIELDS: Table = {
    "metadata": metadata(name("budget")),
    "spec": {
        "minAvailable": PLAIN,
        "maxUnavailable": PLAIN,
        "selector": SELECTOR,
        "unhealthyPodEvictionPolicy": PLAIN,
    },
    "status": {
        "observedGeneration": PLAIN,
        "disruptionsAllowed": PLAIN,
        "currentHealthy": PLAIN,
        "desiredHealthy": PLAIN,
        "expectedPods": PLAIN,
        "disruptedPods": Entries(POD, PLAIN),
    },
}

# Workloads

SERVICE_FIELDS: Table = {"metadata": metadata(name("service")), "spec": {"selector": LABELS}}
REPLICATION_CONTROLLER_FIELDS: Table = {
    "metadata": metadata(name("controller")),
    "spec": {"replicas": PLAIN, "minReadySeconds": PLAIN, "selector": LABELS, "template": TEMPLATE},
    "status": {
        "replicas": PLAIN,
        "fullyLabeledReplicas": PLAIN,
        "readyReplicas": PLAIN,
        "availableReplicas": PLAIN,
        "observedGeneration": PLAIN,
    },
}
REPLICA_SET_FIELDS: Table = {
    "metadata": metadata(name("replicaset")),
    "spec": {"replicas": PLAIN, "minReadySeconds": PLAIN, "selector": SELECTOR, "template": TEMPLATE},
    "status": {
        "replicas": PLAIN,
        "fullyLabeledReplicas": PLAIN,
        "readyReplicas": PLAIN,
        "availableReplicas": PLAIN,
        "observedGeneration": PLAIN,
    },
}
DEPLOYMENT_FIELDS: Table = {
    "metadata": metadata(name("deployment")),
    "spec": {
        "replicas": PLAIN,
        "minReadySeconds": PLAIN,
        "revisionHistoryLimit": PLAIN,
        "progressDeadlineSeconds": PLAIN,
        "paused": PLAIN,
        "selector": SELECTOR,
        "strategy": PLAIN,
        "template": TEMPLATE,
    },
    "status": {
        "observedGeneration": PLAIN,
        "replicas": PLAIN,
        "updatedReplicas": PLAIN,
        "readyReplicas": PLAIN,
        "availableReplicas": PLAIN,
        "unavailableReplicas": PLAIN,
        "collisionCount": PLAIN,
        "conditions": [CONDITION],
    },
}
STATEFUL_SET_FIELDS: Table = {
    "metadata": metadata(name("statefulset")),
    "spec": {
        "replicas": PLAIN,
        "serviceName": name("service"),
        "podManagementPolicy": PLAIN,
        "minReadySeconds": PLAIN,
        "revisionHistoryLimit": PLAIN,
        "ordinals": PLAIN,
        "updateStrategy": PLAIN,
        "persistentVolumeClaimRetentionPolicy": PLAIN,
        "selector": SELECTOR,
        "template": TEMPLATE,
        "volumeClaimTemplates": [
            {"metadata": {"name": VOLUME, "labels": LABELS, "annotations": ANNOTATIONS}, "spec": CLAIM_SPEC}
        ],
    },
    "status": {
        "observedGeneration": PLAIN,
        "collisionCount": PLAIN,
        "replicas": PLAIN,
        "readyReplicas": PLAIN,
        "availableReplicas": PLAIN,
        "currentReplicas": PLAIN,
        "updatedReplicas": PLAIN,
        "currentRevision": name("revision"),
        "updateRevision": name("revision"),
    },
}
DAEMON_SET_FIELDS: Table = {
    "metadata": metadata(name("daemonset")),
    "spec": {
        "minReadySeconds": PLAIN,
        "revisionHistoryLimit": PLAIN,
        "updateStrategy": PLAIN,
        "selector": SELECTOR,
        "template": TEMPLATE,
    },
    "status": {
        "observedGeneration": PLAIN,
        "collisionCount": PLAIN,
        "currentNumberScheduled": PLAIN,
        "desiredNumberScheduled": PLAIN,
        "numberAvailable": PLAIN,
        "numberMisscheduled": PLAIN,
        "numberReady": PLAIN,
        "numberUnavailable": PLAIN,
        "updatedNumberScheduled": PLAIN,
    },
}
JOB_FIELDS: Table = {
    "metadata": metadata(name("job")),
    "spec": {
        "parallelism": PLAIN,
        "completions": PLAIN,
        "activeDeadlineSeconds": PLAIN,
        "backoffLimit": PLAIN,
        "backoffLimitPerIndex": PLAIN,
        "maxFailedIndexes": PLAIN,
        "ttlSecondsAfterFinished": PLAIN,
        "completionMode": PLAIN,
        "podReplacementPolicy": PLAIN,
        "suspend": PLAIN,
        "manualSelector": PLAIN,
        "selector": SELECTOR,
        "template": TEMPLATE,
    },
    "status": {
        "active": PLAIN,
        "ready": PLAIN,
        "terminating": PLAIN,
        "succeeded": PLAIN,
        "failed": PLAIN,
        "startTime": PLAIN,
        "completionTime": PLAIN,
        "completedIndexes": PLAIN,
        "failedIndexes": PLAIN,
        "uncountedTerminatedPods": {"succeeded": [UID], "failed": [UID]},
        "conditions": [CONDITION],
    },
}

# Storage

VOLUME_SPEC: Table = {
    **DISKS,
    "capacity": PLAIN,
    "accessModes": PLAIN,
    "storageClassName": STORAGE_CLASS,
    "volumeMode": PLAIN,
    "volumeAttributesClassName": STORAGE_CLASS,
    "persistentVolumeReclaimPolicy": PLAIN,
    "claimRef": {"kind": PLAIN, "apiVersion": PLAIN, "namespace": NAMESPACE, "name": CLAIM, "uid": UID},
    "nodeAffinity": {"required": NODE_SELECTOR},
    "csi": {"driver": DRIVER, "volumeHandle": HANDLE, "readOnly": PLAIN},
    "azureFile": {"shareName": HANDLE, "secretName": name("secret"), "readOnly": PLAIN},
    "local": {"path": HANDLE},
    "hostPath": {"path": HANDLE},
    "nfs": {"server": HANDLE, "path": HANDLE},
}
VOLUME_SOURCES = frozenset([*DISKS, "csi", "azureFile", "local", "hostPath", "nfs"])
VOLUME_FIELDS: Table = {"metadata": metadata(VOLUME), "spec": VOLUME_SPEC, "status": {"phase": PLAIN}}
CLAIM_FIELDS: Table = {
    "metadata": metadata(CLAIM),
    "spec": CLAIM_SPEC,
    "status": {"phase": PLAIN, "accessModes": PLAIN, "capacity": PLAIN},
}
STORAGE_CLASS_FIELDS: Table = {
    "metadata": metadata(STORAGE_CLASS),
    "provisioner": DRIVER,
    "reclaimPolicy": PLAIN,
    "volumeBindingMode": PLAIN,
    "allowVolumeExpansion": PLAIN,
    "allowedTopologies": [{"matchLabelExpressions": [REQUIREMENT]}],
}
CSI_NODE_FIELDS: Table = {
    "metadata": metadata(NODE),
    "spec": {
        "drivers": [{"name": DRIVER, "nodeID": name("provider"), "topologyKeys": [KEY], "allocatable": PLAIN}],
    },
}
CSI_DRIVER_FIELDS: Table = {
    "metadata": metadata(DRIVER),
    "spec": {"attachRequired": PLAIN, "storageCapacity": PLAIN, "volumeLifecycleModes": PLAIN},
}
CSI_STORAGE_CAPACITY_FIELDS: Table = {
    "metadata": metadata(name("capacity")),
    "storageClassName": STORAGE_CLASS,
    "nodeTopology": SELECTOR,
    "capacity": PLAIN,
    "maximumVolumeSize": PLAIN,
}
VOLUME_ATTACHMENT_FIELDS: Table = {
    "metadata": metadata(name("attachment")),
    "spec": {
        "attacher": DRIVER,
        "nodeName": NODE,
        "source": {"persistentVolumeName": VOLUME, "inlineVolumeSpec": VOLUME_SPEC},
    },
    "status": {"attached": PLAIN},
}

# Devices

DEVICE_SELECTOR: Table = {"cel": {"expression": CEL}}
SUBREQUEST: Table = {
    "name": REQUEST,
    "deviceClassName": PLAIN,
    "selectors": [DEVICE_SELECTOR],
    "allocationMode": PLAIN,
    "count": PLAIN,
    "adminAccess": PLAIN,
    "tolerations": [TAINT],
    "capacity": PLAIN,
}
DEVICE_CLAIM_SPEC: Table = {
    "devices": {
        "requests": [{"name": REQUEST, "exactly": SUBREQUEST, "firstAvailable": [SUBREQUEST]}],
        "constraints": [{"requests": [REQUEST], "matchAttribute": PLAIN, "distinctAttribute": PLAIN}],
    }
}
DEVICE_CLAIM_FIELDS: Table = {
    "metadata": metadata(CLAIM),
    "spec": DEVICE_CLAIM_SPEC,
    "status": {
        "allocation": {
            "devices": {
                "results": [
                    {
                        "request": REQUEST,
                        "driver": PLAIN,
                        "pool": name("pool"),
                        "device": name("device"),
                        "adminAccess": PLAIN,
                        "tolerations": [TAINT],
                        "bindingConditions": PLAIN,
                        "bindingFailureConditions": PLAIN,
                        "shareID": UID,
                        "consumedCapacity": PLAIN,
                    }
                ]
            },
            "nodeSelector": NODE_SELECTOR,
            "allocationTimestamp": PLAIN,
        },
        "reservedFor": [{"apiGroup": PLAIN, "resource": PLAIN, "name": POD, "uid": UID}],
        "devices": [
            {
                "driver": PLAIN,
                "pool": name("pool"),
                "device": name("device"),
                "shareID": UID,
                "conditions": [{**CONDITION, "type": PLAIN}],
            }
        ],
    },
}
DEVICE_CLAIM_TEMPLATE_FIELDS: Table = {
    "metadata": metadata(CLAIM),
    "spec": {"metadata": {"labels": LABELS, "annotations": ANNOTATIONS}, "spec": DEVICE_CLAIM_SPEC},
}
RESOURCE_SLICE_FIELDS: Table = {
    "metadata": metadata(name("slice")),
    "spec": {
        "driver": PLAIN,
        "pool": {"name": name("pool"), "generation": PLAIN, "resourceSliceCount": PLAIN},
        "nodeName": NODE,
        "nodeSelector": NODE_SELECTOR,
        "allNodes": PLAIN,
        "perDeviceNodeSelection": PLAIN,
        "sharedCounters": PLAIN,
        "devices": [
            {
                "name": name("device"),
                "attributes": ATTRIBUTES,
                "capacity": PLAIN,
                "consumesCounters": PLAIN,
                "nodeName": NODE,
                "nodeSelector": NODE_SELECTOR,
                "allNodes": PLAIN,
                "taints": [TAINT],
                "bindsToNode": PLAIN,
                "bindingConditions": PLAIN,
                "bindingFailureConditions": PLAIN,
                "allowMultipleAllocations": PLAIN,
            }
        ],
    },
}
DEVICE_CLASS_FIELDS: Table = {
    "metadata": metadata(PLAIN),
    "spec": {"selectors": [DEVICE_SELECTOR], "extendedResourceName": PLAIN},
}

# Custom kinds

CUSTOM_FIELDS: Table = {"metadata": metadata(name("object")), "*": WHOLE}
DEFINITION_FIELDS: Table = {
    "metadata": {**metadata(PLAIN), "labels": LABELS},
    "spec": {"group": PLAIN, "names": PLAIN, "scope": PLAIN, "versions": PLAIN, "preserveUnknownFields": PLAIN},
}
"""Without the address and the certificate of a conversion webhook."""
