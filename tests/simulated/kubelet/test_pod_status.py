"""What a kubelet reports of a pod."""

from __future__ import annotations

import pytest
from tests.simulated.builders import NOW, a_pod

from mooring.base.clock import timestamp
from mooring.simulated.kubelet.pod_status import (
    always_pulls,
    completed_status,
    gates_changed,
    image_bytes,
    image_id,
    needs_start,
    run_seconds,
    running_status,
)
from mooring.simulated.records import RUN_SECONDS, ContainerRecord, Document

STAMP = timestamp(NOW)


def running(pod) -> Document:
    return running_status(pod, host_ip="172.16.0.2", pod_ip="10.128.0.2", now=NOW)


def conditions(status: Document) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status["conditions"]}


def test_a_running_pod_has_its_addresses_and_its_start():
    status = running(a_pod(node="node-1"))

    assert status["phase"] == "Running"
    assert (status["hostIP"], status["hostIPs"]) == ("172.16.0.2", [{"ip": "172.16.0.2"}])
    assert (status["podIP"], status["podIPs"]) == ("10.128.0.2", [{"ip": "10.128.0.2"}])
    assert status["startTime"] == STAMP


def test_a_running_pod_has_the_kubelets_conditions_and_leaves_the_schedulers_alone():
    status = running(a_pod(conditions=[{"type": "PodScheduled", "status": "True"}]))

    assert conditions(status) == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }


def test_a_condition_keeps_its_transition_time_while_its_status_stays():
    earlier = timestamp(NOW - 60)
    pod = a_pod(conditions=[{"type": "Initialized", "status": "True", "lastTransitionTime": earlier}])

    times = {condition["type"]: condition["lastTransitionTime"] for condition in running(pod)["conditions"]}

    assert times["Initialized"] == earlier
    assert times["Ready"] == STAMP


def test_the_reason_of_an_earlier_status_is_cleared():
    pod = a_pod(conditions=[{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "no"}])

    ready = next(condition for condition in running(pod)["conditions"] if condition["type"] == "Ready")

    assert (ready["reason"], ready["message"]) == (None, None)


def test_running_containers_report_their_resources():
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    pod = a_pod(containers=[{"name": "app", "image": "nginx:1.27", "resources": resources}])

    [container] = running(pod)["containerStatuses"]

    assert container["state"] == {"running": {"startedAt": STAMP}}
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert container["containerID"].startswith("containerd://")
    assert container["resources"] == resources
    assert container["allocatedResources"] == {"cpu": "100m"}


def test_init_containers_have_completed_and_sidecars_run():
    pod = a_pod(
        init_containers=[
            {"name": "setup", "image": "busybox:1"},
            {"name": "proxy", "image": "envoy:1", "restartPolicy": "Always"},
        ]
    )

    setup, proxy = running(pod)["initContainerStatuses"]

    assert setup["state"]["terminated"]["reason"] == "Completed"
    assert (setup["ready"], setup["started"]) == (True, False)
    assert proxy["state"] == {"running": {"startedAt": STAMP}}


@pytest.mark.parametrize(
    ("condition", "ready", "message"),
    [
        (None, "False", 'corresponding condition of pod readiness gate "lb" does not exist.'),
        ("False", "False", 'the status of pod readiness gate "lb" is not "True", but False'),
        ("True", "True", None),
    ],
    ids=["a gate without a condition", "a closed gate", "an open gate"],
)
def test_readiness_gates_decide_about_ready_alone(condition, ready, message):
    given = [{"type": "lb", "status": condition}] if condition else []

    status = running(a_pod(gates=["lb"], conditions=given))

    found = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert (found["status"], found.get("message")) == (ready, message)
    assert conditions(status)["ContainersReady"] == "True"


def test_a_gate_that_opens_is_noticed_and_reported_once():
    opened = [{"type": "lb", "status": "True"}]

    assert gates_changed(a_pod(phase="Running", gates=["lb"], conditions=opened, ready=False))
    assert not gates_changed(a_pod(phase="Running", gates=["lb"], conditions=opened, ready=True))
    assert not gates_changed(a_pod(phase="Running", ready=True))


def test_a_completed_pod_has_succeeded_and_is_no_longer_ready():
    status = completed_status(a_pod(status={"startTime": timestamp(NOW - 5)}), now=NOW)

    assert status["phase"] == "Succeeded"
    assert conditions(status) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
    }
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["startedAt"], ended["finishedAt"]) == (0, timestamp(NOW - 5), STAMP)


RUN_CASES = {
    "a job's pod runs as long as its annotation sets": ("Never", "5", 5.0),
    "so does one that restarts on failure": ("OnFailure", "0.5", 0.5),
    "a pod that always restarts runs for ever": ("Always", "5", None),
    "text that is no number is for ever": ("Never", "soon", None),
    "a negative number is for ever": ("Never", "-1", None),
    "without the annotation it runs for ever": ("Never", "", None),
}


@pytest.mark.parametrize(("policy", "annotation", "seconds"), RUN_CASES.values(), ids=RUN_CASES.keys())
def test_how_long_a_pod_runs(policy, annotation, seconds):
    annotations = {RUN_SECONDS: annotation} if annotation else {}
    assert run_seconds(a_pod(restart_policy=policy, annotations=annotations)) == seconds


START_CASES = {
    "a bound pod that is pending": (a_pod(node="node-1", phase="Pending"), True),
    "a pod without a node": (a_pod(phase="Pending"), False),
    "a running pod": (a_pod(node="node-1", phase="Running"), False),
    "a finished pod": (a_pod(node="node-1", phase="Succeeded"), False),
    "a terminating pod": (a_pod(node="node-1", phase="Pending", terminating=True), False),
}


@pytest.mark.parametrize(("pod", "expected"), START_CASES.values(), ids=START_CASES.keys())
def test_who_is_started(pod, expected):
    assert needs_start(pod) is expected


@pytest.mark.parametrize(
    ("image", "policy", "expected"),
    [
        ("nginx", "", True),
        ("nginx:latest", "", True),
        ("host:5000/nginx", "", True),
        ("nginx:1.27", "", False),
        ("nginx@sha256:abc", "", False),
        ("nginx:latest", "IfNotPresent", False),
        ("nginx:1.27", "Always", True),
    ],
)
def test_which_images_are_pulled_every_time(image, policy, expected):
    assert always_pulls(ContainerRecord(name="app", image=image, image_pull_policy=policy)) is expected


@pytest.mark.parametrize(
    ("image", "repository"),
    [("nginx:1.27", "nginx"), ("nginx", "nginx"), ("host:5000/team/nginx", "host:5000/team/nginx")],
)
def test_an_image_id_is_the_repository_and_a_digest(image, repository):
    assert image_id(image).rpartition("@sha256:")[0] == repository
    assert image_id(image) == image_id(image)
    assert image_bytes(image) == image_bytes(image)
