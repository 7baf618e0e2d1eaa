"""CapacityScheduling: what a pod counts against its quota, and which victims violate a budget."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.community.test_capacity_scheduling import COMPATIBLE, OVER_MAX, World, a_pod_of, a_quota

from mooring.framework import UNRESOLVABLE, Plugin, Refusal
from mooring.objects import ObjectMeta
from mooring.objects.core import Container, ResourceRequirements
from mooring.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from mooring.objects.selectors import LabelSelector
from mooring.testing import a_cluster, a_node


def with_sidecar(pod, cpu):
    sidecar = Container(resources=ResourceRequirements(requests={"cpu": cpu}), restart_policy="Always")
    force_setattr(pod.spec, "init_containers", (sidecar,))
    return pod


def with_pod_level_requests(pod, cpu):
    force_setattr(pod.spec, "resources", ResourceRequirements(requests={"cpu": cpu}))
    return pod


COUNTED = {
    "containers": a_pod_of("a", cpu=5),
    "a sidecar beside them": with_sidecar(a_pod_of("a", cpu=3), "2"),
    "requests of the pod as a whole": with_pod_level_requests(a_pod_of("a", cpu=1), "5"),
}


@pytest.mark.parametrize("pod", COUNTED.values(), ids=COUNTED.keys())
@pytest.mark.parametrize("compatibility", ["mooring", COMPATIBLE])
def test_a_quota_counts_what_a_node_counts(pod, compatibility):
    lists = {"memory": "1Gi", "ephemeral-storage": "1Gi"}
    for most, reason in ((5, None), (4, OVER_MAX)):
        world = World(a_quota("a", min=lists | {"cpu": most}, max=lists | {"cpu": most}), compatibility=compatibility)
        assert world.pre_filter(pod) == reason


class Waits(Plugin):
    """Refuses every pod before other plugins look at it, as a gang that is not complete does."""

    def pre_filter(self, pod, cycle):
        return Refusal("incomplete", code=UNRESOLVABLE)

    def events(self):
        return ()


def test_a_pod_that_another_plugin_refused_first_is_no_error():
    world = World(a_quota("a", min={"cpu": 4}))
    cluster = a_cluster(a_node("node", cpu="4"), plugins=[Waits(), world.plugin])
    message = cluster.decide(a_pod_of("a")).post_filtered.message
    assert message.startswith("0/1 nodes are available: "), message


def a_budget(namespace):
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="keep", namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=0),
    )


def test_a_protected_victim_that_only_the_quotas_forbid_violates_its_budget():
    """The node has room for the pod; what all are guaranteed together has not."""
    quotas = (a_quota("a", min={"cpu": 4}), a_quota("b", min={"cpu": 4}))
    for compatibility, violated in (("mooring", 1), (COMPATIBLE, 0)):
        world = World(*quotas, running=[a_pod_of("b", "b", cpu=8, labels={"app": "web"})], compatibility=compatibility)
        world.services.objects(PodDisruptionBudget).put(a_budget("b"))
        plan = world.cluster.decide(a_pod_of("a", cpu=2)).post_filtered.plan
        assert plan is not None
        [candidate] = plan.candidates
        assert [victim.name for victim in candidate.victims] == ["b"]
        assert candidate.budget_violations == violated
