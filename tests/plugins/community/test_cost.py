"""What decisions about gangs and quotas read: a number of pods that does not grow with the cluster.

Counted in pods, not in time: each pod that a read of the state goes through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.framework import Plugin, Pod
from mooring.objects import ObjectMeta
from mooring.objects.meta import KubeObject
from mooring.objects.placed import placed
from mooring.plugins.community.capacity_scheduling import CapacityScheduling
from mooring.plugins.community.capacity_scheduling.quotas import (
    ElasticQuota,
    ElasticQuotaSpec,
    ElasticQuotaStatus,
    Quota,
)
from mooring.plugins.community.coscheduling import Coscheduling
from mooring.plugins.community.coscheduling.pod_groups import GROUP_LABEL, CoschedulingGroup, CoschedulingGroupSpec
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.state.pod_sets import PodIndex
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod

MEMBERS = 4
DECISIONS = 40
ENDING = 200
"""Pods that end between two decisions: more than a sum outlasts that is not read."""


@dataclass(frozen=True)
class Tenant:
    """A gang or a team: its object and its pods."""

    plugin: type[Plugin]

    def object(self, number: int) -> KubeObject:
        if self.plugin is Coscheduling:
            metadata = ObjectMeta(name=f"gang-{number}", namespace="default", uid=f"gang-{number}")
            return CoschedulingGroup(metadata=metadata, spec=CoschedulingGroupSpec(min_member=MEMBERS))
        metadata = ObjectMeta(name="quota", namespace=f"team-{number}")
        return ElasticQuota(metadata=metadata, spec=ElasticQuotaSpec(min={"cpu": 100}, max={"cpu": 200}))

    def pod(self, number: int, name: str) -> Pod:
        if self.plugin is Coscheduling:
            return a_pod(name, uid=name, cpu="1m", labels={GROUP_LABEL: f"gang-{number}"})
        return a_pod(name, uid=name, namespace=f"team-{number}", cpu="1m")


class Visits:
    """Counts the pods that are gone through."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.pods = 0
        members, matching = PodIndex.members, PodIndex.matching

        def counted_members(index: Any, where: Any) -> list[Any]:
            found = members(index, where)
            self.pods += len(found)
            return found

        def counted_matching(index: Any, where: Any) -> Iterator[Any]:
            for pod in matching(index, where):
                self.pods += 1
                yield pod

        patch.setattr(PodIndex, "members", counted_members)
        patch.setattr(PodIndex, "matching", counted_matching)


def visits_of(tenant: Tenant, tenants: int, running: int, patch: pytest.MonkeyPatch) -> int:
    """Of decisions for one tenant, in a cluster with so many tenants and running pods."""
    services = Services()
    for number in range(tenants):
        services.objects(type(tenant.object(number))).put(tenant.object(number))
    plugins = [a_plugin(NodeResourcesFit, services), a_plugin(tenant.plugin, services)]
    cluster = a_cluster(a_node("node", cpu="64", pods=10**6), plugins=plugins, services=services)
    state = services.state
    for number in range(running):
        state.set_pod(placed(tenant.pod(number % tenants, f"running-{number}"), "node"))
    waiting = [tenant.pod(0, f"incoming-{number}") for number in range(DECISIONS)]
    for pod in waiting:
        state.set_pending(pod)
    ending = iter(range(1, running, tenants) if tenants > 1 else range(running))
    cluster.decide(waiting[0])
    with patch.context() as context:
        visits = Visits(context)
        for at, pod in enumerate(waiting):
            if at == DECISIONS // 2:
                for number, _ in zip(ending, range(ENDING), strict=False):
                    state.remove_pod(f"running-{number}")
            assert cluster.decide(pod).node == "node"
            state.assume(pod, "node", 1.0)
    return visits.pods


def test_decisions_about_quotas_visit_no_pod(monkeypatch):
    tenant = Tenant(CapacityScheduling)
    assert visits_of(tenant, 2, 2_000, monkeypatch) == 0
    assert visits_of(tenant, 20, 4_000, monkeypatch) == 0


def test_decisions_about_a_gang_visit_its_own_members_alone(monkeypatch):
    tenant = Tenant(Coscheduling)
    few = visits_of(tenant, 100, 200, monkeypatch)
    assert few <= DECISIONS * (DECISIONS + 2)
    assert visits_of(tenant, 1_000, 2_000, monkeypatch) == few


def quotas_with(used: int) -> Iterable[ElasticQuota]:
    for number in range(50):
        quota = Tenant(CapacityScheduling).object(number)
        assert isinstance(quota, ElasticQuota)
        force_setattr(quota, "status", ElasticQuotaStatus(used={"cpu": used}))
        yield quota


def test_a_status_that_changes_does_not_make_all_quotas_be_read_again(monkeypatch):
    services = Services(objects={ElasticQuota: list(quotas_with(0))})
    plugin = a_plugin(CapacityScheduling, services)
    cluster = a_cluster(a_node("node", cpu="64"), plugins=[plugin], services=services)
    pod = Tenant(CapacityScheduling).pod(0, "pod")
    cluster.decide(pod)
    read, parse = [], Quota.of

    def counted(quota: ElasticQuota, **more: Any) -> Quota:
        read.append(quota.key)
        return parse(quota, **more)

    monkeypatch.setattr(Quota, "of", counted)
    for quota in quotas_with(1):
        services.objects(ElasticQuota).put(quota)
        assert cluster.decide(pod).node == "node"
    assert read == []

    changed = ElasticQuota(metadata=ObjectMeta(name="quota", namespace="team-0"), spec=ElasticQuotaSpec(max={"cpu": 0}))
    services.objects(ElasticQuota).put(changed)
    assert cluster.decide(pod).node is None
    assert len(read) == 50
