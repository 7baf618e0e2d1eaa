"""`scripts/measure-recovery` measures; and what of it does not depend on how fast the machine is."""

from __future__ import annotations

from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.recovery import KUBE_SCHEDULER, MOORING, Comparison


def test_a_leader_that_lost_the_server_for_longer_than_its_lease_is_not_started_again(cluster: Cluster):
    faults = ["connections-cut", "server-killed-20s"]
    comparison = Comparison(cluster.control_plane, cluster.home)
    comparison.measure(faults, rounds=1)
    assert set(comparison.figures) == {(fault, who) for fault in faults for who in (MOORING, KUBE_SCHEDULER)}
    for fault in faults:
        figures = comparison.figures[fault, MOORING]
        assert figures.restarts == 0
        assert len(figures.next) == len(figures.all) == 1
    assert "server-killed-20s" in comparison.table()
