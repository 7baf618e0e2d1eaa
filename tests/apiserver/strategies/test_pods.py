"""Pods: defaulting, admission and validation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builders import a_pod, a_priority_class

from mooring.apiserver.status import StatusError


def refusal(store: Any, document: dict[str, Any]) -> StatusError:
    with pytest.raises(StatusError) as raised:
        store.create(document)
    return raised.value


def test_what_the_api_fills_in(store: Any):
    pod = store.create(a_pod(container={"ports": [{"containerPort": 80}]}))
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert {
        field: spec[field]
        for field in (
            "restartPolicy",
            "dnsPolicy",
            "schedulerName",
            "terminationGracePeriodSeconds",
            "securityContext",
            "serviceAccountName",
            "enableServiceLinks",
            "preemptionPolicy",
            "priority",
        )
    } == {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "serviceAccountName": "default",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
    }
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == {}
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1
    assert pod["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert pod["metadata"]["uid"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("host.test:5000/app", "Always"),
        ("host.test:5000/app:1", "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
    ],
)
def test_images_are_pulled_always_where_their_tag_moves(store: Any, image: str, policy: str):
    pod = store.create(a_pod(container={"image": image}))
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_requests_default_to_limits_and_quantities_become_canonical(store: Any):
    resources = {"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"memory": "0.5Gi"}}
    stored = store.create(a_pod(container={"resources": resources}))["spec"]["containers"][0]["resources"]
    assert stored == {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "512Mi"}}


QOS = {
    "without requests and limits": ({}, "BestEffort"),
    "limits on both": ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    "a request below its limit": (
        {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        "Burstable",
    ),
    "requests alone": ({"requests": {"cpu": "1"}}, "Burstable"),
    "only something else": ({"limits": {"example.com/gpu": "1"}}, "BestEffort"),
}


@pytest.mark.parametrize(("resources", "expected"), QOS.values(), ids=QOS.keys())
def test_qos_class(store: Any, resources: dict[str, Any], expected: str):
    assert store.create(a_pod(container={"resources": resources}))["status"]["qosClass"] == expected


def test_default_tolerations_are_added_unless_the_pod_has_its_own(store: Any):
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    tolerations = store.create(a_pod(tolerations=[own]))["spec"]["tolerations"]
    assert tolerations[0] == own
    assert [(each["key"], each["tolerationSeconds"]) for each in tolerations[1:]] == [
        ("node.kubernetes.io/unreachable", 300)
    ]
    assert store.create(a_pod("all", tolerations=[{"operator": "Exists"}]))["spec"]["tolerations"] == [
        {"operator": "Exists"}
    ]


def test_priority_comes_from_the_class(store: Any):
    store.create(a_priority_class("high", 100, preemptionPolicy="Never"))
    spec = store.create(a_pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (100, "Never")
    assert store.create(a_pod("system", priorityClassName="system-node-critical"))["spec"]["priority"] == 2000001000


def test_the_lowest_of_the_default_classes_is_the_default(store: Any):
    store.create(a_priority_class("some", 20, globalDefault=True))
    store.create(a_priority_class("less", 10, globalDefault=True))
    spec = store.create(a_pod())["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("less", 10)


def test_an_unknown_class_and_a_chosen_number_are_forbidden(store: Any):
    unknown = refusal(store, a_pod(priorityClassName="nope"))
    assert (unknown.code, unknown.message) == (
        403,
        'pods "web" is forbidden: no PriorityClass with name nope was found',
    )
    chosen = refusal(store, a_pod(priority=5))
    assert chosen.message == (
        'pods "web" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority'
        " admission controller computed 0 from the given PriorityClass name"
    )


def test_an_account_must_exist(store: Any):
    assert refusal(store, a_pod(serviceAccountName="robot")).message == (
        'pods "web" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
    )
    store.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    assert store.create(a_pod(serviceAccountName="robot"))["spec"]["serviceAccount"] == "robot"


def test_a_gated_pod_has_the_condition(store: Any):
    (condition,) = store.create(a_pod(schedulingGates=[{"name": "wait"}]))["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"], condition["message"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
        "Scheduling is blocked due to non-empty scheduling gates",
    )


def test_match_label_keys_become_requirements_with_the_pods_own_values(store: Any):
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["revision", "absent"],
    }
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["revision"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = store.create(a_pod(labels={"revision": "7"}, topologySpreadConstraints=[spread], affinity=affinity))["spec"]
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [
        {"key": "revision", "operator": "In", "values": ["7"]}
    ]
    stored = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert stored["labelSelector"]["matchExpressions"] == [{"key": "revision", "operator": "NotIn", "values": ["7"]}]


def test_a_runtime_class_brings_its_overhead_and_where_it_runs(store: Any):
    store.create(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "vm"},
            "handler": "vm",
            "overhead": {"podFixed": {"cpu": "250m"}},
            "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
        }
    )
    spec = store.create(a_pod(runtimeClassName="vm"))["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"vm": "yes"}
    assert {"key": "vm", "operator": "Exists"} in spec["tolerations"]
    assert 'RuntimeClass "nope" not found' in refusal(store, a_pod("other", runtimeClassName="nope")).message


INVALID = {
    "no containers": (a_pod(containers=[]), "spec.containers: Required value"),
    "a bad name": (a_pod("Web"), 'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must consist of'),
    "a bad label value": (
        a_pod(labels={"a": "b!"}),
        'metadata.labels: Invalid value: "b!": a valid label must be an empty string',
    ),
    "a bad label key": (a_pod(labels={"a b": ""}), 'metadata.labels: Invalid value: "a b": name part must consist of'),
    "no image": (a_pod(container={"image": ""}), "spec.containers[0].image: Required value"),
    "two containers of one name": (
        a_pod(containers=[{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]),
        'spec.containers[1].name: Duplicate value: "a"',
    ),
    "more requested than the limit": (
        a_pod(container={"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    "a negative request": (
        a_pod(container={"resources": {"requests": {"memory": "-1"}}}),
        'spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "an unknown plain resource": (
        a_pod(container={"resources": {"requests": {"gpu": "1"}}}),
        'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
    ),
    "half a device": (
        a_pod(container={"resources": {"limits": {"example.com/gpu": "500m"}}}),
        'resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    "an unknown restart policy": (
        a_pod(restartPolicy="Sometimes"),
        'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
    ),
    "an unknown taint effect": (
        a_pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]),
        'spec.tolerations[0].effect: Unsupported value: "Never"',
    ),
    "a toleration of every key with a value": (
        a_pod(tolerations=[{"value": "x"}]),
        "operator must be Exists when `key` is empty",
    ),
    "node affinity without terms": (
        a_pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
        "nodeSelectorTerms: Required value: must have at least one node selector term",
    ),
    "a weight out of range": (
        a_pod(
            affinity={
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]}
            }
        ),
        "weight: Invalid value: 101: must be in the range 1-100",
    ),
    "no skew": (
        a_pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    "the same gate twice": (
        a_pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        'spec.schedulingGates[1]: Duplicate value: "a"',
    ),
    "a gate on a pod that is placed": (
        a_pod(schedulingGates=[{"name": "a"}], nodeName="node-1"),
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    ),
    "a mount of no volume": (
        a_pod(container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
        'spec.containers[0].volumeMounts[0].name: Not found: "data"',
    ),
    "a port out of range": (
        a_pod(container={"ports": [{"containerPort": 70000}]}),
        "containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ),
}


@pytest.mark.parametrize(("pod", "sentence"), INVALID.values(), ids=INVALID.keys())
def test_an_invalid_pod_is_refused_with_the_field_and_why(store: Any, pod: dict[str, Any], sentence: str):
    refused = refusal(store, pod)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert sentence in refused.message


def test_all_errors_are_reported_at_once(store: Any):
    refused = refusal(store, a_pod("Web", containers=[{"name": "", "image": ""}]))
    assert refused.details is not None
    assert [cause["field"] for cause in refused.details["causes"]] == [
        "metadata.name",
        "spec.containers[0].name",
        "spec.containers[0].image",
    ]


DECODING = {
    "an unknown field": (
        a_pod(container={"restart": "Never"}),
        'strict decoding error: unknown field "spec.containers[0].restart"',
    ),
    "an impossible quantity": (
        a_pod(container={"resources": {"requests": {"cpu": "one"}}}),
        "spec.containers[0].resources.requests[cpu]: quantities must match the regular expression",
    ),
    "a text for a number": (
        a_pod(terminationGracePeriodSeconds="30"),
        "json: cannot unmarshal string into Go struct field spec.terminationGracePeriodSeconds of type int64",
    ),
    "an object for a list": (a_pod(tolerations={}), "spec.tolerations of type slice"),
}


@pytest.mark.parametrize(("pod", "sentence"), DECODING.values(), ids=DECODING.keys())
def test_a_pod_that_cannot_be_decoded_is_a_bad_request(store: Any, pod: dict[str, Any], sentence: str):
    refused = refusal(store, pod)
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message.startswith('Pod in version "v1" cannot be handled as a Pod: ')
    assert sentence in refused.message
