"""The contract carries a quota in a custom resource: objects, standing sums, and waking by both."""

from __future__ import annotations

import pytest
from tests.plugins.contract.quota import Quota, QuotaSpec, TeamQuota
from tests.plugins.verdicts import requeues

from mooring.framework import Action, ClusterEvent
from mooring.framework.events import resource_name
from mooring.objects import ObjectMeta
from mooring.objects.placed import placed
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod


def a_quota(team: str, cpu: str) -> Quota:
    return Quota(metadata=ObjectMeta(name=team), spec=QuotaSpec(cpu=cpu))


def a_team_pod(team: str | None, cpu: str = "1", name: str = "pod"):
    return a_pod(name, cpu=cpu, labels={} if team is None else {"team": team})


def a_quota_cluster():
    services = Services(objects={Quota: [a_quota("red", "2")]})
    return a_cluster(a_node(cpu="64"), plugins=[a_plugin(TeamQuota, services)], services=services)


def test_a_team_gets_as_much_as_its_quota_and_no_more():
    cluster = a_quota_cluster()
    placements = [cluster.schedule(a_team_pod("red")) for _ in range(3)]
    assert [decision.node for decision in placements] == ["node", "node", None]
    assert "team red has 0m of its 2000m CPU left, the pod wants 1000m" in placements[2].message
    assert placements[2].rejectors[0] == {"TeamQuota"}


@pytest.mark.parametrize("team", [None, "blue"])
def test_pods_without_team_or_quota_have_no_limit(team):
    cluster = a_quota_cluster()
    assert all(cluster.schedule(a_team_pod(team)).node for _ in range(5))


def test_a_pod_that_ends_gives_its_share_back():
    cluster = a_quota_cluster()
    big = a_team_pod("red", "2")
    cluster.schedule(big)
    assert cluster.schedule(a_team_pod("red")).node is None
    cluster.state.remove_pod(big.uid)
    assert cluster.schedule(a_team_pod("red")).node is not None


def test_a_larger_quota_counts_at_once():
    cluster = a_quota_cluster()
    assert cluster.schedule(a_team_pod("red", "3")).node is None
    cluster.services.objects(Quota).put(a_quota("red", "4"))
    assert cluster.schedule(a_team_pod("red", "3")).node is not None


def test_only_the_teams_own_pods_wake_it():
    plugin = a_plugin(TeamQuota)
    assert requeues(plugin, a_team_pod("red"), placed(a_team_pod("red"), "node"), None)
    assert not requeues(plugin, a_team_pod("red"), placed(a_team_pod("blue"), "node"), None)


@pytest.mark.parametrize(("team", "expected"), [("red", True), ("blue", False)])
def test_only_the_teams_own_quota_wakes_it(team, expected):
    hint = next(hint for hint in a_plugin(TeamQuota).events() if hint.resource == resource_name(Quota))
    assert hint.matches(ClusterEvent(resource_name(Quota), Action.UPDATE))
    assert hint.test is not None
    assert hint.test(a_team_pod(team), a_quota("red", "1"), a_quota("red", "2")) is expected
