"""SySched: extraneous system calls, counted."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.objects import ObjectMeta
from mooring.objects.meta import KubeObject
from mooring.plugins.community.sysched import (
    ANNOTATION,
    NO_CALLS,
    SeccompContainer,
    SeccompContext,
    SeccompPod,
    SeccompPodSpec,
    SeccompPodStatus,
    SeccompProfile,
    SeccompProfileSpec,
    SeccompReference,
    SeccompSyscall,
    SySched,
)
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod, scored_one_by_one


def a_profile(name, *calls, action="SCMP_ACT_ALLOW"):
    spec = SeccompProfileSpec(syscalls=[SeccompSyscall(action=action, names=list(calls))])
    return SeccompProfile(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


PROFILES = [
    a_profile("web", "read", "write"),
    a_profile("db", "read", "mount"),
    a_profile("logged", "ptrace", action="SCMP_ACT_LOG"),
    a_profile("denied", "ptrace", action="SCMP_ACT_ERRNO"),
    a_profile("all-syscalls", "read", "write", "mount", "ptrace"),
]


def profiled(name, *profiles, phase="Running", annotations=None, namespace="default"):
    """A pod and its profiles."""
    pod = a_pod(name, namespace=namespace, annotations=annotations or {})
    contexts = [
        SeccompContext(
            seccomp_profile=SeccompReference(type="Localhost", localhost_profile=f"operator/default/{profile}.json")
        )
        for profile in profiles
    ]
    spec = SeccompPodSpec(containers=[SeccompContainer(security_context=context) for context in contexts])
    return pod, SeccompPod(metadata=pod.metadata, spec=spec, status=SeccompPodStatus(phase=phase))


def score(incoming, *running, profiles=PROFILES, **arguments):
    services = Services(objects={SeccompProfile: profiles, SeccompPod: [each for _, each in (incoming, *running)]})
    cluster = a_cluster(a_node("node", running=[pod for pod, _ in running]), services=services)
    scores = scored_one_by_one(a_plugin(SySched, services, **arguments), incoming[0], cluster)
    assert scores is not None
    return scores["node"]


CASES = {
    "an empty node has none": (profiled("in", "web"), [], 0),
    "pods that are alike have none": (profiled("in", "web"), [profiled("other", "web")], 0),
    "those of the other count, and the own ones for it": (profiled("in", "web"), [profiled("other", "db")], 2),
    "each pod there counts": (profiled("in", "web"), [profiled("one", "db"), profiled("two", "web")], 1 + 1 + 1),
    "calls that are logged are allowed": (profiled("in", "logged"), [profiled("other", "web")], 2 + 1),
    "several profiles are added up": (profiled("in", "web", "db"), [profiled("other", "web")], 1),
    "an annotation names one too": (
        profiled("in", annotations={f"container.{ANNOTATION}/main": "operator/default/web.json"}),
        [profiled("other", "web")],
        0,
    ),
    "without a profile the default counts": (profiled("in"), [profiled("other", "web")], 2),
    "an unknown or empty profile is none": (profiled("in", "unknown", "denied"), [profiled("other", "web")], 2),
}


@pytest.mark.parametrize(("incoming", "running", "expected"), CASES.values(), ids=CASES.keys())
def test_extraneous_calls_are_counted(incoming, running, expected):
    assert score(incoming, *running) == expected


def test_a_pod_without_known_calls_scores_alike_everywhere():
    assert score(profiled("in"), profiled("other", "web"), profiles=PROFILES[:-1]) == NO_CALLS


def test_a_pod_that_starts_counts_already():
    starting = profiled("other", "db", phase="Pending")
    assert score(profiled("in", "web"), starting) == 2
    assert score(profiled("in", "web"), starting, compatibility="scheduler-plugins") == 0


def test_pods_of_one_name_in_two_namespaces_both_count():
    running = [profiled("same", "db"), profiled("same", "db", namespace="other")]
    assert score(profiled("in", "web"), *running) == 3
    assert score(profiled("in", "web"), *running, compatibility="scheduler-plugins") == 2


@pytest.mark.parametrize("profiles", [PROFILES, []], ids=["calls", "no calls"])
def test_the_fewest_become_the_best(profiles):
    incoming, alike, other = profiled("in", "web"), profiled("alike", "web"), profiled("other", "db")
    objects: dict[type[KubeObject], list[Any]] = {
        SeccompProfile: profiles,
        SeccompPod: [each for _, each in (incoming, alike, other)],
    }
    services = Services(objects=objects)
    nodes = [a_node("other", running=[other[0]]), a_node("alike", running=[alike[0]])]
    cluster = a_cluster(*nodes, plugins=[a_plugin(SySched, services)], services=services)
    decision = cluster.schedule(incoming[0])
    assert decision.scores["SySched"].normalized == 100
    assert decision.node == ("alike" if profiles else "other")
