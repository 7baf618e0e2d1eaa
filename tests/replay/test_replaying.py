"""Recorded decisions are reproduced by the same configuration; another one differs where its plugins do."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recording.recorded import read_recorded
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.config import Configuration, default_configuration, load_configuration
from mooring.plugins.catalogue import catalogue
from mooring.recording import Recording
from mooring.replay import cluster_at, replay
from mooring.simulator import Arrival, Cluster
from mooring.testing import a_node_object
from mooring.why.recomputation import Recomputation

MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}]}
"""
SAMPLING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 20
"""


def loaded(text: str = "") -> Configuration:
    registry = catalogue()
    if not text:
        return default_configuration(registry)
    return load_configuration(text, source="test", registry=registry).configuration


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.recording"


@st.composite
def histories(draw: st.DrawFn) -> tuple[Cluster, list[Arrival]]:
    cpus = draw(st.lists(st.sampled_from(["1", "2", "4"]), min_size=1, max_size=6))
    nodes = [a_node_object(f"node-{place}", cpu=cpu, memory="16Gi") for place, cpu in enumerate(cpus)]
    pods = draw(
        st.lists(
            st.tuples(
                st.integers(0, 60),
                st.sampled_from(["100m", "500m", "1", "3"]),
                st.sampled_from([0, 0, 0, 10]),
                st.one_of(st.none(), st.integers(1, 40)),
            ),
            min_size=1,
            max_size=25,
        )
    )
    arrivals = [
        arriving(at, f"pod-{place}", cpu=cpu, priority=priority, seconds=seconds)
        for place, (at, cpu, priority, seconds) in enumerate(pods)
    ]
    return Cluster(nodes), arrivals


@settings(max_examples=12, deadline=None)
@given(histories())
def test_the_same_configuration_takes_every_decision_again(history: tuple[Cluster, list[Arrival]]):
    cluster, arrivals = history
    with tempfile.TemporaryDirectory() as folder:
        recording = read_recorded(Path(folder) / "a.recording", cluster, *arrivals)
        result = replay(recording, loaded(), catalogue())
        assert (result.differing, result.skipped) == ([], {})
        assert result.same == len(recording.decisions) > 0


CONFIGURATIONS = {"all nodes": "", "a sample of the nodes": SAMPLING}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_a_segment_behind_the_first_reproduces_its_decisions(path: Path, text: str):
    nodes = [f"node-{place}" for place in range(120)]
    arrivals = [
        arriving(at * 2, f"pod-{at}", cpu="500m" if at % 3 else "900m", seconds=50, priority=at % 7)
        for at in range(900)
    ]
    recording = read_recorded(path, a_cluster_of(*nodes), *arrivals, limit_bytes=128 * 1024, configuration=loaded(text))
    # How much fits depends on how much the thread of the writer flushes at once: the first segment may be dropped.
    assert max(header.segment for header in recording.headers.values()) > 1
    result = replay(recording, None, catalogue())
    assert (result.differing, result.skipped) == ([], {})
    assert result.same == len(recording.decisions)


def spread_and_packed(path: Path) -> Recording:
    return read_recorded(path, a_cluster_of("a", "b"), *(arriving(at, f"pod-{at}", cpu="100m") for at in range(4)))


def test_another_configuration_differs_and_the_plugin_is_named(path: Path):
    recording = spread_and_packed(path)
    result = replay(recording, loaded(MOST_ALLOCATED), catalogue())
    assert result.decisions == 4
    assert result.same + len(result.differing) == 4
    assert result.differing
    for each in result.differing:
        assert each.was != each.would
        assert each.move is not None
        assert (each.move.cause, each.move.plugin) == ("score", "NodeResourcesFit")
        assert "NodeResourcesFit shifted" in each.explained()


def test_each_decision_is_taken_on_the_recorded_state_and_not_on_one_that_diverges(path: Path):
    """With MostAllocated all pods would go to one node if its own placements counted: here pods are spread."""
    recording = spread_and_packed(path)
    result = replay(recording, loaded(MOST_ALLOCATED), catalogue())
    # On the recorded state, where each of two nodes has a pod, the nodes are equal: a tie, as it was recorded.
    assert 2 not in {each.index for each in result.differing}


def test_only_the_wanted_decisions_are_taken_again(path: Path):
    recording = spread_and_packed(path)
    result = replay(recording, None, catalogue(), wanted=lambda each: each.pod == "default/pod-2")
    assert (result.decisions, result.same) == (1, 1)


def test_the_cluster_of_a_decision_can_be_explained(path: Path):
    recording = spread_and_packed(path)
    cluster = cluster_at(recording, 3)
    pod = next(each for each in cluster.pods if each.name == "pod-3")
    with Recomputation(cluster, loaded(), catalogue()) as recomputation:
        assert recomputation.decide(pod).node is not None
