"""Defaulting and validation of workloads, volumes, services and other kinds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import NODES, a_config_map, a_deployment, a_node, a_priority_class
from tests.apiserver.conftest import Client

from mooring.apiserver.status import StatusError

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def named(api_version: str, kind: str, name: str = "it", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def test_a_deployment_is_defaulted(store: Any):
    deployment = store.create(a_deployment())
    spec = deployment["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert spec["template"]["spec"]["schedulerName"] == "default-scheduler"
    assert "priority" not in spec["template"]["spec"]
    assert deployment["metadata"]["generation"] == 1


async def test_a_client_is_warned_of_a_kind_that_nothing_acts_on(api: Client):
    path, quota = (
        "/api/v1/namespaces/default/resourcequotas",
        named("v1", "ResourceQuota", spec={"hard": {"pods": "1"}}),
    )
    warned = await api.post(path, quota)
    assert warned.headers["Warning"] == '299 - "the embedded cluster stores ResourceQuotas but does not enforce them"'
    assert "Warning" not in (await api.get(f"{path}/it")).headers
    assert "Warning" not in (await api.post(DEPLOYMENTS, a_deployment())).headers


async def test_scaling_changes_the_spec_and_its_generation(api: Client):
    await api.post(DEPLOYMENTS, a_deployment())
    scale = (await api.get(f"{DEPLOYMENTS}/web/scale")).body
    assert (scale["kind"], scale["apiVersion"], scale["status"]["selector"]) == ("Scale", "autoscaling/v1", "app=web")
    scale["spec"]["replicas"] = 5
    assert (await api.put(f"{DEPLOYMENTS}/web/scale", scale)).body["spec"]["replicas"] == 5
    deployment = (await api.get(f"{DEPLOYMENTS}/web")).body
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (5, 2)
    assert (await api.put(f"{DEPLOYMENTS}/web/scale", scale)).code == 409
    scale["spec"]["replicas"] = -1
    assert (await api.put(f"{DEPLOYMENTS}/web/scale", scale)).code == 422


async def test_a_selector_never_changes(api: Client):
    await api.post(DEPLOYMENTS, a_deployment())
    response = await api.patch(f"{DEPLOYMENTS}/web", {"spec": {"selector": {"matchLabels": {"more": "x"}}}})
    assert "spec.selector: Invalid value" in response.message
    assert "field is immutable" in response.message


async def test_the_status_of_a_deployment_does_not_touch_its_generation(api: Client):
    await api.post(DEPLOYMENTS, a_deployment())
    response = await api.patch(f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 1, "observedGeneration": 1}})
    assert (response.body["status"]["replicas"], response.body["metadata"]["generation"]) == (1, 1)


TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


def a_claim_template(name: str = "data", **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": wanted | spec}


def a_stateful_set(**spec: Any) -> dict[str, Any]:
    return named("apps/v1", "StatefulSet", spec={**SELECTED, **spec})


def a_daemon_set(**spec: Any) -> dict[str, Any]:
    return named("apps/v1", "DaemonSet", spec={**SELECTED, **spec})


def a_cron_job(name: str = "it", **spec: Any) -> dict[str, Any]:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    whole = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}}
    return named("batch/v1", "CronJob", name, spec=whole | spec)


def mounting(*names: str, **pod: Any) -> dict[str, Any]:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    container = {"name": "c", "image": "i", "volumeMounts": mounts}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], **pod}}


INVALID = {
    "a selector that misses its template": (
        a_deployment(selector={"matchLabels": {"app": "db"}}),
        "`selector` does not match template `labels`",
    ),
    "an empty selector": (a_deployment(selector={}), "empty selector is invalid for deployment"),
    "no selector": (a_deployment(selector=None), "spec.selector: Required value"),
    "fewer than no replicas": (a_deployment(replicas=-1), "spec.replicas: Invalid value: -1"),
    "a template that ends": (
        named(
            "apps/v1",
            "ReplicaSet",
            spec={**SELECTED, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
        ),
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ),
    "a job that restarts for ever": (
        named("batch/v1", "Job", spec={"template": TEMPLATE}),
        'spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"',
    ),
    "a mount of a volume that no claim template brings": (
        a_stateful_set(template=mounting("logs"), volumeClaimTemplates=[a_claim_template()]),
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "logs"',
    ),
    "a claim template of nothing": (
        a_stateful_set(volumeClaimTemplates=[a_claim_template(resources={})]),
        "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
    ),
    "a stateful set whose pods could not be named": (
        named("apps/v1", "StatefulSet", "a.b", spec=dict(SELECTED)),
        'metadata.name: Invalid value: "a.b"',
    ),
    "an unknown pod management policy": (
        a_stateful_set(podManagementPolicy="Random"),
        "must be 'OrderedReady' or 'Parallel'",
    ),
    "a partition without a rolling update": (
        a_stateful_set(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        "only allowed for updateStrategy 'RollingUpdate'",
    ),
    "an unknown retention policy": (
        a_stateful_set(persistentVolumeClaimRetentionPolicy={"whenScaled": "Keep"}),
        'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep"',
    ),
    "ordinals below zero": (a_stateful_set(ordinals={"start": -1}), "spec.ordinals.start: Invalid value: -1"),
    "a deadline of pods that never end": (
        a_stateful_set(template=mounting(activeDeadlineSeconds=5)),
        "activeDeadlineSeconds in StatefulSet is not Supported",
    ),
    "a daemon set that surges and may be unavailable": (
        a_daemon_set(updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
        "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
    ),
    "a daemon set that could not be updated": (
        a_daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
    ),
    "more than all nodes": (
        a_daemon_set(updateStrategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
        'maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ),
    "an unknown way to update daemons": (a_daemon_set(updateStrategy={"type": "Now"}), "spec.updateStrategy: Unsupp"),
    "a surge that is no amount": (
        a_deployment(strategy={"rollingUpdate": {"maxSurge": "many"}}),
        "spec.strategy.rollingUpdate.maxSurge: Invalid value",
    ),
    "a rollout that could never begin": (
        a_deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        "may not be 0 when `maxSurge` is 0",
    ),
    "a schedule that cannot be read": (
        a_cron_job(schedule="* * * *"),
        'spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]',
    ),
    "no schedule": (a_cron_job(schedule=""), "spec.schedule: Required value"),
    "a time zone in the schedule": (
        a_cron_job(schedule="TZ=UTC * * * * *"),
        "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
    ),
    "an unknown time zone": (
        a_cron_job(timeZone="Mars/Base"),
        'Invalid value: "Mars/Base": unknown time zone Mars/Base',
    ),
    "the time zone of the machine": (a_cron_job(timeZone="Local"), "timeZone must be an explicit time zone"),
    "an unknown concurrency policy": (
        a_cron_job(concurrencyPolicy="Some"),
        'spec.concurrencyPolicy: Unsupported value: "Some": supported values: "Allow", "Forbid", "Replace"',
    ),
    "a deadline before the time": (
        a_cron_job(startingDeadlineSeconds=-1),
        "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
    ),
    "a cron job whose jobs could not be named": (
        a_cron_job("x" * 53),
        'metadata.name: Invalid value: "' + "x" * 53 + '": must be no more than 52 characters',
    ),
    "a user's priority above the limit": (
        a_priority_class("x", 1_000_000_001),
        "maximum allowed value of a user defined priority is 1000000000",
    ),
    "a reserved priority class": (a_priority_class("system-x", 1), "are reserved for system use only"),
    "a claim of nothing": (
        named("v1", "PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"]}),
        "spec.resources[storage]: Required value",
    ),
    "a claim without a mode": (
        named("v1", "PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1Gi"}}}),
        "spec.accessModes: Required value: at least 1 access mode is required",
    ),
    "a class without a provisioner": (named("storage.k8s.io/v1", "StorageClass"), "provisioner: Required value"),
    "a service without ports": (named("v1", "Service", spec={}), "spec.ports: Required value"),
    "a taint of an unknown effect": (
        a_node(taints=[{"key": "a", "effect": "Never"}]),
        'spec.taints[0].effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule",',
    ),
    "a taint without an effect": (a_node(taints=[{"key": "a"}]), "spec.taints[0].effect: Required value"),
    "the same taint twice": (
        a_node(taints=[{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]),
        "taints must be unique by key and effect pair",
    ),
    "a role binding to nothing": (
        named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", roleRef={"kind": "ClusterRole"}),
        "roleRef.name: Required value",
    ),
}


@pytest.mark.parametrize(("document", "sentence"), INVALID.values(), ids=INVALID.keys())
def test_an_invalid_object_is_refused_with_the_field_and_why(store: Any, document: dict[str, Any], sentence: str):
    with pytest.raises(StatusError) as refused:
        store.create(document)
    assert refused.value.code == 422
    assert sentence in refused.value.message


def test_a_claim_template_brings_the_volume_that_its_pods_mount(store: Any):
    template = mounting("data", "tmp", volumes=[{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}])
    stored = store.create(a_stateful_set(template=template, volumeClaimTemplates=[a_claim_template()]))["spec"]
    assert [each["name"] for each in stored["template"]["spec"]["volumes"]] == ["tmp", "data"]
    assert stored["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"


def test_a_stateful_set_replaces_one_pod_at_a_time_as_its_gate_stands(store: Any):
    rolling = {"partition": 1, "maxUnavailable": 3}
    stored = store.create(a_stateful_set(updateStrategy={"rollingUpdate": rolling}))["spec"]
    assert stored["updateStrategy"]["rollingUpdate"] == {"partition": 1}


async def test_a_daemon_set_counts_how_often_its_template_changed(api: Client):
    daemon_sets = "/apis/apps/v1/namespaces/default/daemonsets"

    def generation(response: Any) -> str:
        return str(response.body["metadata"]["annotations"]["deprecated.daemonset.template.generation"])

    assert generation(await api.post(daemon_sets, a_daemon_set())) == "1"
    annotations = {"metadata": {"annotations": {"deprecated.daemonset.template.generation": None, "a": "b"}}}
    assert generation(await api.patch(f"{daemon_sets}/it", annotations)) == "1"
    template = {"spec": {"template": {"spec": {"hostNetwork": True}}}}
    assert generation(await api.patch(f"{daemon_sets}/it", template)) == "2"


def test_jobs_select_their_own_pods(store: Any):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = store.create(named("batch/v1", "Job", spec={"template": template}))
    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "it"
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)


def test_other_workloads_are_defaulted(store: Any):
    stateful = store.create(named("apps/v1", "StatefulSet", spec=dict(SELECTED)))["spec"]
    assert stateful["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert stateful["podManagementPolicy"] == "OrderedReady"
    daemons = store.create(named("apps/v1", "DaemonSet", spec=dict(SELECTED)))["spec"]
    assert daemons["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    controller = store.create(named("v1", "ReplicationController", spec={"template": TEMPLATE}))["spec"]
    assert (controller["selector"], controller["replicas"]) == ({"a": "b"}, 1)
    assert store.create(a_cron_job())["spec"]["concurrencyPolicy"] == "Allow"


def test_services_get_addresses_and_ports(store: Any):
    kubernetes = store.get("services", "kubernetes")
    assert kubernetes["spec"]["clusterIP"] == "10.96.0.1"
    service = store.create(named("v1", "Service", spec={"type": "NodePort", "ports": [{"port": 80}]}))["spec"]
    assert service["clusterIP"] == "10.96.0.2"
    assert service["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30000}]
    headless = named("v1", "Service", "none", spec={"clusterIP": "None", "ports": [{"port": 80}]})
    assert store.create(headless)["spec"]["clusterIPs"] == ["None"]


def test_a_claim_gets_the_default_class(store: Any):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    metadata = {"name": "fast", "annotations": annotations}
    store.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": "x"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = store.create(named("v1", "PersistentVolumeClaim", spec=spec))
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["status"] == {"phase": "Pending"}


def test_secrets_take_plain_text_and_keep_base64(store: Any):
    secret = store.create(named("v1", "Secret", stringData={"a": "b"}))
    assert (secret["data"], secret["type"], "stringData" in secret) == ({"a": "Yg=="}, "Opaque", False)


def test_rbac_names_may_have_colons_and_references_get_their_group(store: Any):
    binding = named(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "system:x",
        roleRef={"kind": "ClusterRole", "name": "y"},
        subjects=[{"kind": "User", "name": "u"}],
    )
    stored = store.create(binding)
    assert stored["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert stored["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"


async def test_a_node_is_created_whole_and_its_spec_and_status_are_written_apart(api: Client):
    node = (await api.post(NODES, a_node())).body
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    cordoned = await api.patch(f"{NODES}/node-1", {"spec": {"unschedulable": True}, "status": {"capacity": None}})
    assert cordoned.body["spec"] == {"unschedulable": True}
    assert cordoned.body["status"]["capacity"]["cpu"] == "4"
    status = await api.patch(f"{NODES}/node-1/status", {"status": {"capacity": {"cpu": "8"}}})
    assert status.body["status"]["capacity"] == {"cpu": "8", "memory": "8Gi", "pods": "110"}
    found = (await api.get(f"{NODES}?fieldSelector=spec.unschedulable%3Dtrue")).body["items"]
    assert [each["metadata"]["name"] for each in found] == ["node-1"]


async def test_generated_names_are_unique(api: Client):
    document = a_config_map()
    document["metadata"] = {"generateName": "m-", "namespace": "default"}
    names = {
        (await api.post("/api/v1/namespaces/default/configmaps", document)).body["metadata"]["name"] for _ in range(5)
    }
    assert len(names) == 5
    assert all(name.startswith("m-") and len(name) == 7 for name in names)


async def test_a_lease_may_be_created_by_writing_it(api: Client):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/it"
    response = await api.put(path, named("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "me"}))
    assert response.code == 201
    assert (await api.get(path)).body["spec"]["holderIdentity"] == "me"


async def test_a_document_of_another_kind_or_version_is_a_bad_request(api: Client):
    for wrong in (a_config_map() | {"kind": "Secret"}, a_config_map() | {"apiVersion": "v2"}):
        assert (await api.post("/api/v1/namespaces/default/configmaps", wrong)).code == 400


async def test_the_same_name_twice_already_exists(api: Client):
    await api.post(NODES, a_node())
    response = await api.post(NODES, a_node())
    assert (response.code, response.message) == (409, 'nodes "node-1" already exists')
