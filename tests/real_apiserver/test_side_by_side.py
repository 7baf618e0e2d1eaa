"""The real kube-scheduler and Mooring place the same mixed pods on equal clusters: all that can be seen is equal.

Of nodes that are worth the same either may take any. Seeds and numbers can be changed to look for more:
`MOORING_MIXED_PODS=1000 MOORING_MIXED_SEED=7 make test-real PYTEST_ARGS="-k mixed"`.
"""

from __future__ import annotations

import json
import os

from tests.real_apiserver import mixed_pods
from tests.real_apiserver.cluster import PRIORITIES, Cluster
from tests.real_apiserver.control_plane import SCHEDULER
from tests.real_apiserver.side_by_side import Recording, Seen

COUNT = int(os.environ.get("MOORING_MIXED_PODS", "300"))
SEED = int(os.environ.get("MOORING_MIXED_SEED", "1"))


def test_mixed_pods_are_placed_as_kube_scheduler_places_them(cluster: Cluster):
    configuration = cluster.home / "both.yaml"
    configuration.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "percentageOfNodesToScore": 100,
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(cluster.control_plane.kubeconfig(SCHEDULER))},
            }
        ),
        encoding="utf-8",
    )
    for document in mixed_pods.priority_classes(COUNT, SEED):
        cluster.api.create(PRIORITIES, document)
    recording = Recording(cluster, mixed_pods.pods(COUNT, SEED))

    cluster.nodes_of(mixed_pods.nodes())
    theirs = recording.run(cluster.kube_scheduler(f"--config={configuration}", "-v=10"))
    cluster.clear()

    cluster.nodes_of(mixed_pods.nodes())
    ours = recording.run(cluster.scheduler(f"--config={configuration}", "-v=10"), follow=theirs)

    differences = [text for one, other in zip(theirs, ours, strict=True) for text in differences_of(one, other)]
    assert not differences, "\n".join(differences)
    # It was worth the while: all kinds of ends came about.
    assert any(seen.refusal and not seen.node for seen in theirs)
    assert any(seen.victims for seen in theirs)
    assert any(seen.nominations for seen in theirs)
    assert sum(bool(seen.scores) for seen in theirs) > COUNT / 4


def differences_of(theirs: Seen, ours: Seen) -> list[str]:
    """The differences in messages and decisions, in words."""
    found = []
    if bool(theirs.node) != bool(ours.node):
        found.append(f"placed on {theirs.node or 'no node'}, by us on {ours.node or 'no node'}")
    if theirs.refusal != ours.refusal:
        found.append(f"message {theirs.refusal!r}, ours {ours.refusal!r}")
    if theirs.scores != ours.scores:
        found.append(f"scores {theirs.scores}, ours {ours.scores}")
    if ours.node and ours.node not in theirs.best:
        found.append(f"placed on {ours.node}, which is not the best for them: {theirs.best}")
    if theirs.node and theirs.node not in ours.best:
        found.append(f"placed on {theirs.node}, which is not the best for us: {ours.best}")
    if theirs.victims != ours.victims:
        found.append(f"victims {sorted(theirs.victims)}, ours {sorted(ours.victims)}")
    if theirs.nominations != ours.nominations:
        found.append(f"nominated to {theirs.nominations}, by us to {ours.nominations}")
    if theirs.condition != ours.condition:
        found.append(f"condition {theirs.condition}, ours {ours.condition}")
    if theirs.events != ours.events:
        found.append(f"events {sorted(theirs.events)}, ours {sorted(ours.events)}")
    return [f"{theirs.pod}: {text}" for text in found]
