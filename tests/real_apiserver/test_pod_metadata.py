"""What plugins write to pods, on a real API server, by the rights that the manifests grant for it."""

from __future__ import annotations

from pathlib import Path

from tests.real_apiserver.cluster import PODS, Cluster
from tests.real_apiserver.deployments import Deployment, manifests, own_port
from tests.real_apiserver.test_rights import Audit

PLUGIN = Path(__file__).with_name("note_keeper.py")
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: NoteKeeper}]}}
"""


def test_annotations_and_labels_are_written_before_and_with_the_binding(cluster: Cluster, image_root: Path):
    config = cluster.home / "scheduler.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    flags = (f"--config={config}", f"--plugins={PLUGIN}", "--name=notes", "--namespace=notes")
    cluster.nodes(1)
    with Deployment(cluster, manifests(*flags, home=cluster.home), image_root) as deployment:
        scheduler = deployment.start(*own_port())
        scheduler.ready()
        cluster.pod("web", labels={"app": "web"})
        assert cluster.bound("web") == "node-1"
        pod = cluster.api.get(f"{PODS}/web")["metadata"]
        assert pod["annotations"] == {"example.com/patched-for": "node-1", "example.com/bound-to": "node-1"}
        own = {key: value for key, value in pod["labels"].items() if not key.startswith("topology.kubernetes.io/")}
        assert own == {"app": "web", "patched-for": "node-1", "bound-to": "node-1"}
        audit = Audit(cluster, deployment.user)
        assert ("", "pods", "patch") in audit.used()
        assert audit.refused() == []
        assert scheduler.end() == 0, scheduler.written()
