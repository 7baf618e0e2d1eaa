"""The quality of service of a pod, from its spec."""

from __future__ import annotations

import pytest

from mooring.objects.core import Container, Pod, PodSpec, ResourceRequirements
from mooring.objects.qos import Qos, qos_of

BOTH = {"cpu": "1", "memory": "1Gi"}


def resources(requests=None, limits=None):
    return ResourceRequirements(requests=requests or {}, limits=limits or {})


def a_pod(*containers, init=(), whole=None):
    return Pod(
        spec=PodSpec(
            containers=tuple(Container(resources=each) for each in containers),
            init_containers=tuple(Container(resources=each) for each in init),
            resources=whole,
        )
    )


CASES = {
    "nothing named": (a_pod(resources()), Qos.BEST_EFFORT),
    "an extended resource alone": (a_pod(resources({"example.com/gpu": "1"})), Qos.BEST_EFFORT),
    "zero is nothing": (a_pod(resources({"cpu": "0"})), Qos.BEST_EFFORT),
    "requests equal to limits": (a_pod(resources(BOTH, BOTH)), Qos.GUARANTEED),
    "equal in another notation": (a_pod(resources(BOTH, {"cpu": "1000m", "memory": "1024Mi"})), Qos.GUARANTEED),
    "no limit of memory": (a_pod(resources(BOTH, {"cpu": "1"})), Qos.BURSTABLE),
    "a request below its limit": (a_pod(resources({"cpu": "500m", "memory": "1Gi"}, BOTH)), Qos.BURSTABLE),
    "one container without limits": (a_pod(resources(BOTH, BOTH), resources()), Qos.BURSTABLE),
    "init containers count": (a_pod(resources(), init=[resources({"cpu": "1"})]), Qos.BURSTABLE),
    "the pod as a whole counts instead": (a_pod(resources(), whole=resources(BOTH, BOTH)), Qos.GUARANTEED),
}


@pytest.mark.parametrize(("pod", "qos"), CASES.values(), ids=CASES.keys())
def test_the_class_follows_from_requests_and_limits(pod, qos):
    assert qos_of(pod) is qos
