"""LowRiskOverCommitment: little risk by limits, little risk by load."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.community.trimaran_loads import cpu, memory, score

from mooring.objects.core import Container, ResourceRequirements
from mooring.plugins.community.trimaran import LowRiskOverCommitment
from mooring.plugins.community.trimaran.beta_distribution import beta_of, regularized_incomplete_beta
from mooring.testing import a_pod


def a_pod_with(cpu="1", cpu_limit=None):
    pod = a_pod()
    limits = {} if cpu_limit is None else {"cpu": cpu_limit}
    force_setattr(
        pod.spec, "containers", (Container(resources=ResourceRequirements(requests={"cpu": cpu}, limits=limits)),)
    )
    return pod


CASES = {
    "no limit exceeds the node and little is used": ([*cpu(0), *memory(0)], a_pod_with(), {}, 100),
    "limits exceed the node": (cpu(0), a_pod_with("2", "6"), {}, 75),
    "limits alone count": (cpu(0), a_pod_with("2", "6"), {"risk_limit_weights": {"cpu": 1.0}}, 50),
    "load alone counts": (cpu(0), a_pod_with("2", "6"), {"risk_limit_weights": {"cpu": 0.0}}, 100),
    "a weight beyond 1 counts as a half": (cpu(0), a_pod_with("2", "6"), {"risk_limit_weights": {"cpu": 2.0}}, 75),
    "a pod that names nothing has 0": (cpu(0), a_pod(), {}, 0),
    "without measurements it is 0": ([], a_pod_with(), {}, 0),
    "before the first fetch it is 0": (None, a_pod_with(), {}, 0),
}


@pytest.mark.parametrize(("loads", "pod", "arguments", "expected"), CASES.values(), ids=CASES.keys())
def test_the_score_is_what_the_risk_leaves(loads, pod, arguments, expected):
    assert score(LowRiskOverCommitment, loads, pod, **arguments) == expected


def test_a_load_beyond_what_is_requested_is_a_risk():
    running = [a_pod("running", cpu="4")]
    steady, loaded = ([*cpu(load, 0), *memory(0)] for load in (90, 100))
    light, heavy = (score(LowRiskOverCommitment, load, a_pod_with(), running=running) for load in (steady, loaded))
    assert light >= heavy


def test_the_beta_distribution_has_the_given_mean():
    found = beta_of(0.25, 0.1)
    assert found is not None
    a, b = found
    assert a / (a + b) == pytest.approx(0.25)


KNOWN = [(0.5, 1, 1, 0.5), (0.5, 2, 2, 0.5), (0.25, 2, 3, 0.26171875), (0.9, 5, 1, 0.9**5), (0, 2, 2, 0), (1, 2, 2, 1)]


@pytest.mark.parametrize(("x", "a", "b", "expected"), KNOWN)
def test_the_incomplete_beta_function_has_known_values(x, a, b, expected):
    assert regularized_incomplete_beta(x, a, b) == pytest.approx(expected, abs=1e-12)
