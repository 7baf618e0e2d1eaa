"""`mooring fit` and `mooring drain-check` on a real API server, by a user who may only list: nothing is written."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.programs import Program
from tests.real_apiserver.cluster import NODES, PODS, Cluster
from tests.real_apiserver.control_plane import POWERLESS

MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 3}}}]}
"""


def versions(cluster: Cluster) -> dict[str, str]:
    """What changes with every write."""
    items = [*cluster.api.items(PODS), *cluster.api.items(NODES)]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


def test_rights_to_list_are_enough(cluster: Cluster):
    with cluster.nodes(2):
        pass  # their kubelets would go on writing
    cluster.pod("small", cpu="2", nodeName="node-1")
    page = (Path(__file__).parents[2] / "docs/snapshots.md").read_text(encoding="utf-8")
    [role] = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```", page, re.MULTILINE | re.DOTALL)
    cluster.kubectl.run("apply", "-f", "-", input=role)
    bind = ("clusterrolebinding", "planning", "--clusterrole=mooring-snapshot", f"--user={POWERLESS}")
    cluster.kubectl.run("create", *bind)
    (cluster.home / "web.yaml").write_text(MANIFEST)
    before = versions(cluster)
    flag = f"--kubeconfig={cluster.control_plane.kubeconfig(POWERLESS)}"
    try:
        with Program("fit", "web.yaml", flag, home=cluster.home, cwd=cluster.home) as fit:
            assert fit.ended() == 0, fit.written()
        with Program("drain-check", "node-1", "--force", flag, home=cluster.home, cwd=cluster.home) as drain:
            assert drain.ended() == 0, drain.written()
    finally:
        cluster.kubectl.run("delete", "clusterrolebinding/planning", "clusterrole/mooring-snapshot")
    assert "Pods like default/web that fit: 1." in fit.written()
    assert "Yes: node-1 can be drained." in drain.written()
    assert versions(cluster) == before
