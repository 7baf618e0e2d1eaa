"""A real kube-apiserver that is killed and started again: few lines, and no right that is missing."""

from __future__ import annotations

from tests.real_apiserver.cluster import PODS, Cluster

RESTARTS = 3
POD = {"containers": [{"name": "main", "image": "pause"}]}


def test_restarts_of_the_api_server_are_a_few_lines_for_all_kinds(cluster: Cluster):
    """It refuses what it will allow when it has loaded its RBAC rules, and does not know versions of before."""
    cluster.nodes(1)
    scheduler = cluster.scheduler()
    for restart in range(RESTARTS):
        cluster.control_plane.kill_server()
        cluster.control_plane.start_server()
        cluster.api.create(PODS, {"metadata": {"name": f"web-{restart}"}, "spec": POD})
        cluster.bound(f"web-{restart}")
    assert scheduler.end() == 0
    lines = [line for line in scheduler.written().splitlines() if "reflector]" in line or "client]" in line]
    assert [line for line in lines if " kind=" in line or "RBAC rule would allow" in line] == []
    # Of an outage: its reasons (cut, refused, no response in time), that the server starts, and the end.
    assert len(lines) <= 5 * RESTARTS, lines
