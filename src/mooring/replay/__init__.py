"""Recorded decisions taken again: by the configuration that made them, or by another one.

recording = Recording.read("cluster.recording")
result = replay(recording, configuration, registry)
result.differing[0].explained()
cluster = cluster_at(recording, 7)
"""

from mooring.replay.changes_since import changes_since
from mooring.replay.clusters import cluster_at
from mooring.replay.replaying import Replay, ReplayedDecision, ReplayResult, replay

__all__ = ["Replay", "ReplayResult", "ReplayedDecision", "changes_since", "cluster_at", "replay"]
