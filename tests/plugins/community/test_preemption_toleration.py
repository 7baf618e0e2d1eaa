"""PreemptionToleration: which pods are spared, and that all else is as with DefaultPreemption."""

from __future__ import annotations

import pytest

from mooring.base.clock import timestamp
from mooring.objects import ObjectMeta
from mooring.objects.core import PodCondition
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.scheduling import PriorityClass
from mooring.objects.selectors import LabelSelector
from mooring.plugins.community.preemption_toleration import PreemptionToleration
from mooring.plugins.community.preemption_toleration.tolerations import (
    MINIMUM_PRIORITY,
    TOLERATION_SECONDS,
    ClassedPod,
    ClassedPodSpec,
    ClassedPodStatus,
)
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod

PREEMPTOR_PRIORITY = 100


def a_class(name="batch", value=0, *, minimum=None, seconds=None):
    annotations = {MINIMUM_PRIORITY: minimum, TOLERATION_SECONDS: seconds}
    given = {key: text for key, text in annotations.items() if text is not None}
    return PriorityClass(metadata=ObjectMeta(name=name, annotations=given), value=value)


def preempt(*classes, scheduled_before=10.0, class_name="batch", labels=None, budgets=(), **arguments):
    """Who is evicted for a pod that needs the whole node, on which one pod of the class runs."""
    services = Services(objects={PriorityClass: classes, PodDisruptionBudget: budgets})
    running = a_pod("running", cpu="4", priority=0, labels=labels or {})
    conditions = []
    if scheduled_before is not None:
        at = timestamp(services.clock.now() - scheduled_before)
        conditions.append(PodCondition(type="PodScheduled", status="True", last_transition_time=at))
    services.objects(ClassedPod).put(
        ClassedPod(
            metadata=running.metadata,
            spec=ClassedPodSpec(priority_class_name=class_name),
            status=ClassedPodStatus(conditions=conditions),
        )
    )
    plugins = [a_plugin(NodeResourcesFit, services), a_plugin(PreemptionToleration, services, **arguments)]
    cluster = a_cluster(a_node("only", cpu="4", running=[running]), plugins=plugins, services=services)
    return cluster.schedule(a_pod("important", cpu="4", priority=PREEMPTOR_PRIORITY))


def victims(decision):
    plan = decision.post_filtered.plan
    return [] if plan is None else [victim.name for victim in plan.evict]


SPARED = {
    "a class tolerates pods below its minimum, for so long": a_class(minimum="200", seconds="11"),
    "for ever": a_class(minimum="200", seconds="-1"),
}
EVICTED = {
    "a class without annotations tolerates nothing": a_class(),
    "its time is over": a_class(minimum="200", seconds="10"),
    "no time is given": a_class(minimum="200"),
    "the preemptor has the minimum": a_class(minimum="100", seconds="-1"),
    "time alone helps against no pod of higher priority": a_class(seconds="-1"),
    "an annotation that is no number": a_class(minimum="200", seconds="1.5"),
    "a minimum beyond 32 bits": a_class(minimum="4294967296", seconds="-1"),
}


@pytest.mark.parametrize("compatibility", ["mooring", "scheduler-plugins"])
@pytest.mark.parametrize("tolerating", SPARED.values(), ids=SPARED.keys())
def test_a_pod_is_spared(tolerating, compatibility):
    assert victims(preempt(tolerating, compatibility=compatibility)) == []


@pytest.mark.parametrize("compatibility", ["mooring", "scheduler-plugins"])
@pytest.mark.parametrize("tolerating", EVICTED.values(), ids=EVICTED.keys())
def test_a_pod_is_evicted(tolerating, compatibility):
    assert victims(preempt(tolerating, compatibility=compatibility)) == ["running"]


RETRIES = {
    "when the toleration ends": ("40", "mooring", [30.0]),
    "not at once, where it ends soon": ("11", "mooring", [10.0]),
    "by the queue, where it ends in more than five minutes": ("311", "mooring", [None]),
    "by an event, where it never ends": ("-1", "mooring", [None]),
    "by an event, in scheduler-plugins": ("40", "scheduler-plugins", [None]),
}


@pytest.mark.parametrize(("seconds", "compatibility", "after"), RETRIES.values(), ids=RETRIES.keys())
def test_a_pod_is_tried_again(seconds, compatibility, after):
    decision = preempt(a_class(minimum="200", seconds=seconds), compatibility=compatibility)
    assert [remedy.retry_after for remedy in decision.post_filtered.remedies] == after


def test_a_pod_that_is_not_scheduled_by_its_conditions_is_spared():
    assert victims(preempt(a_class(minimum="200", seconds="1"), scheduled_before=None)) == []


def test_a_pod_without_a_class_is_evicted():
    assert victims(preempt(a_class(minimum="200", seconds="-1"), class_name="")) == ["running"]


def test_a_class_that_is_gone_tolerates_nothing():
    other = a_class("other", minimum="200", seconds="-1")
    assert victims(preempt(other, class_name="gone")) == ["running"]


def test_in_scheduler_plugins_a_class_that_is_gone_protects_its_node_by_an_error():
    decision = preempt(class_name="gone", compatibility="scheduler-plugins")
    assert victims(decision) == []
    assert 'priorityclass.scheduling.k8s.io "gone" not found' in str(decision.post_filtered.results)


def test_spared_pods_are_reported_in_one_reason_for_all_nodes():
    decision = preempt(a_class(minimum="200", seconds="-1"))
    assert decision.post_filtered.message == (
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_in_scheduler_plugins_each_node_has_a_reason_of_its_own():
    decision = preempt(a_class(minimum="200", seconds="-1"), compatibility="scheduler-plugins")
    assert decision.post_filtered.message == (
        "0/1 nodes are available: 1 No victims found on node only for preemptor pod important."
    )


@pytest.mark.parametrize("tolerating", [a_class(), a_class("other", minimum="200", seconds="-1")])
def test_violated_budgets_are_counted(tolerating):
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="keep", namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=0),
    )
    decision = preempt(tolerating, a_class(), labels={"app": "web"}, budgets=[budget])
    [candidate] = decision.post_filtered.plan.candidates
    assert candidate.budget_violations == 1
