"""A recording shows what has changed since a pod was bound, also what left no trace in the objects."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.recording.recorded import read_recorded
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.explain import since_recorded
from mooring.recording import Recording
from mooring.replay import changes_since, cluster_at
from mooring.simulator import Cluster
from mooring.testing import a_node_object, a_pod


def recording_in(folder: Path) -> Recording:
    arrivals = [arriving(0, "first", seconds=600, cpu="100m"), arriving(5, "web", seconds=600, cpu="100m")]
    return read_recorded(folder / "a.recording", a_cluster_of("a", "b"), *arrivals)


def as_it_was(recording: Recording) -> Cluster:
    """The cluster right after the second decision."""
    cluster = cluster_at(recording, 1)
    node = recording.decisions[1].node or ""
    pods = [
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        if pod.name == "web"
        else pod
        for pod in cluster.pods
    ]
    return Cluster(cluster.nodes, pods)


def test_nothing_has_changed_right_after_the_decision(tmp_path: Path):
    recording = recording_in(tmp_path)
    now = as_it_was(recording)
    web = next(pod for pod in now.pods if pod.name == "web")
    since = changes_since(recording, web, now)
    assert since is not None
    assert since["node"] == web.spec.node_name
    assert since_recorded({"sinceRecorded": since}).endswith("Nothing that decisions read has changed since.")


def test_nodes_and_pods_that_came_went_or_changed_are_listed(tmp_path: Path):
    recording = recording_in(tmp_path)
    then = as_it_was(recording)
    web = next(pod for pod in then.pods if pod.name == "web")
    here = web.spec.node_name
    other = next(node for node in then.nodes if node.name != here)
    nodes = [
        a_node_object(here, cpu="1", memory="16Gi", labels={"disk": "ssd"}),
        a_node_object("c", cpu="1", memory="16Gi"),
    ]
    now = Cluster(nodes, [web, a_pod("late", uid="late", node=here)])
    since = changes_since(recording, web, now)
    assert since is not None
    text = since_recorded({"sinceRecorded": since})
    assert "1 node was added: c" in text
    assert f"1 node was removed: {other.name}" in text
    assert f"{here} has other labels" in text
    assert "pods that were bound: 1; that are gone: 1" in text
    assert "bound to its node: default/late" in text


def test_a_pod_that_was_not_decided_there_is_unknown(tmp_path: Path):
    recording = recording_in(tmp_path)
    assert changes_since(recording, a_pod("other", uid="other", node="a"), as_it_was(recording)) is None
