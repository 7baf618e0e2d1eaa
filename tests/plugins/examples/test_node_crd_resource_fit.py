"""NodeCRDResourceFit: a custom resource of the node's name lists what it admits, and how well it serves that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr
from tests.plugins.verdicts import requeues, verdict

from mooring.framework import UNRESOLVABLE, Action, ClusterEvent
from mooring.framework.events import resource_name
from mooring.objects import ObjectMeta
from mooring.objects.core import Container, Pod, ResourceRequirements
from mooring.plugins.examples.node_crd_resource_fit import (
    ClusterScopedResource,
    ClusterScopedResourceSpec,
    NodeCRDResourceFit,
)
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_node_object, a_plugin, a_pod

MEMORY = "company.net/memory"
DISK = "company.net/disk"
NOT_FOUND = "CRD for node not found"


def an_offer(
    node: str = "node", enabled: Mapping[str, bool] | None = None, scores: Mapping[str, int] | None = None
) -> ClusterScopedResource:
    spec = ClusterScopedResourceSpec(resources_filter=dict(enabled or {}), resources_score=dict(scores or {}))
    return ClusterScopedResource(metadata=ObjectMeta(name=node), spec=spec)


def services_with(*offers: ClusterScopedResource) -> Services:
    return Services(objects={ClusterScopedResource: offers})


def requesting(*resources: str) -> Pod:
    return a_pod("nginx", requests=dict.fromkeys(resources, "100Mi"))


def refused(reason: str):
    return (UNRESOLVABLE, (reason,))


FILTER = {
    "a node that enables what is requested": (requesting(MEMORY), [an_offer(enabled={MEMORY: True})], None),
    "a node without an object": (requesting(MEMORY), [], refused(NOT_FOUND)),
    "another node's object does not count": (
        requesting(MEMORY),
        [an_offer("other", enabled={MEMORY: True})],
        refused(NOT_FOUND),
    ),
    "a resource that is switched off": (
        requesting(MEMORY),
        [an_offer(enabled={MEMORY: False})],
        refused(f"Node does not enable resource {MEMORY}"),
    ),
    "a resource that is not named": (
        requesting(MEMORY),
        [an_offer(enabled={DISK: True})],
        refused(f"Node does not enable resource {MEMORY}"),
    ),
    "the first missing one in alphabetical order is reported": (
        requesting("cpu", MEMORY, DISK),
        [an_offer(enabled={"cpu": True})],
        refused(f"Node does not enable resource {DISK}"),
    ),
    "ordinary resources need to be enabled too": (
        requesting("cpu"),
        [an_offer(enabled={MEMORY: True})],
        refused("Node does not enable resource cpu"),
    ),
    "a pod that requests nothing needs only the object": (requesting(), [an_offer()], None),
    "a pod that requests nothing still needs the object": (requesting(), [], refused(NOT_FOUND)),
}


@pytest.mark.parametrize(("pod", "offers", "expected"), FILTER.values(), ids=FILTER.keys())
def test_which_nodes_are_admitted(pod, offers, expected):
    plugin = a_plugin(NodeCRDResourceFit, services_with(*offers))
    assert verdict(plugin.filter(pod, a_node(), a_cycle(pod))) == expected


def test_all_regular_containers_count_and_init_containers_do_not():
    pod = requesting(MEMORY)
    second = Container(name="second", resources=ResourceRequirements(requests={DISK: "1"}))
    force_setattr(pod.spec, "containers", (*pod.spec.containers, second))
    init = Container(name="init", resources=ResourceRequirements(requests={"cpu": "1"}))
    force_setattr(pod.spec, "init_containers", (init,))
    offers = an_offer("both", {MEMORY: True, DISK: True}), an_offer("one", {MEMORY: True})
    plugin = a_plugin(NodeCRDResourceFit, services_with(*offers))
    assert plugin.filter(pod, a_node("both"), a_cycle(pod)) is None
    assert verdict(plugin.filter(pod, a_node("one"), a_cycle(pod))) == refused(f"Node does not enable resource {DISK}")


SCORE = {
    "the score of the one resource": ([MEMORY], {MEMORY: 55}, 55),
    "the mean of several": ([MEMORY, DISK], {MEMORY: 20, DISK: 40}, 30),
    "the mean is rounded up": ([MEMORY, DISK], {MEMORY: 55, DISK: 56}, 56),
    "a resource without a score counts 0": ([MEMORY, DISK], {MEMORY: 55}, 28),
    "a negative score counts 0": ([MEMORY, DISK], {MEMORY: 50, DISK: -50}, 25),
    "more than 100 counts 100": ([MEMORY, DISK], {MEMORY: 2**62, DISK: 0}, 50),
    "what is not requested does not count": ([MEMORY], {MEMORY: 10, DISK: 90}, 10),
    "a pod that requests nothing scores 0": ([], {MEMORY: 55}, 0),
}


@pytest.mark.parametrize(("requested", "scores", "expected"), SCORE.values(), ids=SCORE.keys())
def test_the_score_is_the_mean_over_what_is_requested(requested, scores, expected):
    plugin = a_plugin(NodeCRDResourceFit, services_with(an_offer(scores=scores)))
    pod = requesting(*requested)
    assert plugin.score(pod, a_node(), a_cycle(pod)) == expected


@given(st.dictionaries(st.sampled_from("abcdefghij"), st.integers(), min_size=1))
def test_any_scores_give_a_mean_between_0_and_100(scores):
    plugin = a_plugin(NodeCRDResourceFit, services_with(an_offer(scores=scores)))
    pod = requesting(*scores)
    exact = Fraction(sum(sorted((0, score, 100))[1] for score in scores.values()), len(scores))
    assert plugin.score(pod, a_node(), a_cycle(pod)) == math.ceil(exact)


def test_where_only_its_score_is_configured_a_node_without_an_object_counts_0():
    pod = requesting(MEMORY)
    assert a_plugin(NodeCRDResourceFit).score(pod, a_node(), a_cycle(pod)) == 0


def test_the_better_of_the_admitted_nodes_wins_and_the_log_reports_how():
    services = services_with(an_offer("E", {MEMORY: True}, {MEMORY: 55}), an_offer("F", {MEMORY: True}, {MEMORY: 56}))
    nodes = [a_node(name) for name in "ABEF"]
    decision = a_cluster(*nodes, plugins=[a_plugin(NodeCRDResourceFit, services)]).decide(requesting(MEMORY))
    assert decision.node == "F"
    assert [(message, *values.values()) for _, message, values in services.log.lines] == [
        (NOT_FOUND, "A"),
        (NOT_FOUND, "B"),
        ("Scoring node", "E"),
        ("Resources and score", "nginx", "E", 55),
        ("Scoring node", "F"),
        ("Resources and score", "nginx", "F", 56),
    ]


def test_below_verbosity_five_it_is_silent():
    services = Services(objects={ClusterScopedResource: [an_offer()]}, verbosity=4)
    plugin, pod = a_plugin(NodeCRDResourceFit, services), requesting(MEMORY)
    plugin.filter(pod, a_node(), a_cycle(pod))
    plugin.score(pod, a_node("other"), a_cycle(pod))
    assert services.log.lines == []


def test_the_message_counts_the_reasons():
    services = services_with(an_offer("C", {DISK: True}))
    nodes = [a_node(name) for name in "ABC"]
    message = a_cluster(*nodes, plugins=[a_plugin(NodeCRDResourceFit, services)]).decide(requesting(MEMORY)).message
    assert message.startswith(
        f"0/3 nodes are available: 1 Node does not enable resource {MEMORY}, 2 CRD for node not found."
    )


ENABLED, DISABLED = an_offer(enabled={MEMORY: True}), an_offer(enabled={MEMORY: False})
WAKING = {
    "an object that admits the pod": (None, ENABLED, True),
    "an object that does not": (None, DISABLED, False),
    "an object that begins to": (DISABLED, ENABLED, True),
    "an object that did before": (ENABLED, an_offer(enabled={MEMORY: True, DISK: True}), False),
    "an object that ceases to": (ENABLED, DISABLED, False),
    "an object that goes": (ENABLED, None, False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_which_objects_wake_a_refused_pod(before, after, expected):
    action = Action.ADD if before is None else Action.DELETE if after is None else Action.UPDATE
    event = ClusterEvent(resource_name(ClusterScopedResource), action)
    concerned = [hint for hint in a_plugin(NodeCRDResourceFit).events() if hint.matches(event)]
    woken = any(hint.test is None or hint.test(requesting(MEMORY), before, after) for hint in concerned)
    assert woken is expected


@pytest.mark.parametrize(("offers", "expected"), [([ENABLED], True), ([DISABLED], False), ([], False)])
def test_a_node_wakes_a_refused_pod_if_its_object_is_there_already(offers, expected):
    plugin = a_plugin(NodeCRDResourceFit, services_with(*offers))
    assert requeues(plugin, requesting(MEMORY), None, a_node_object()) is expected


def test_events_name_the_kind_as_a_custom_one_although_its_group_is_kubernetes_own():
    assert resource_name(ClusterScopedResource) == "clusterscopedresources.v1alpha1.scheduling.sigs.k8s.io"
