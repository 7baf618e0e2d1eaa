"""The decisions about the members of a pod group are recorded, and reproduced."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recording.recorded import MANY
from tests.simulator.scenarios import arriving

from mooring.config import default_configuration
from mooring.framework.gates import read_gates
from mooring.plugins.catalogue import catalogue
from mooring.recording import Recorder, Recording, RecordingWriter, rows
from mooring.replay import replay
from mooring.replay.replaying import LIMITED
from mooring.simulator import Arrival, Cluster, simulate
from mooring.testing import a_node_object, a_pod_group

GANGS = "GenericWorkload=true,GangScheduling=true"
TOPOLOGY = f"{GANGS},TopologyAwareWorkloadScheduling=true"


def recorded_gangs(path: Path, *arrivals: Arrival, gates: str = GANGS, topology_key: str | None = None) -> Recording:
    """On two nodes of two cores and two racks, with a gang of three and one of two."""
    nodes = [a_node_object(f"node-{rack}", cpu="2", labels={"rack": rack}) for rack in ("a", "b")]
    groups = [a_pod_group("three", min_count=3), a_pod_group("two", min_count=2, topology_key=topology_key)]
    registry, on = catalogue(), read_gates([gates]).gates
    recorder = Recorder(most_items=MANY)
    with RecordingWriter(path, recorder):
        simulate(
            Cluster(nodes, objects=groups),
            arrivals,
            default_configuration(registry, on),
            registry=registry,
            gates=on,
            recorder=recorder,
        )
    return Recording.read(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.recording"


def members(group: str, count: int, *, at: float = 0, cpu: str = "1") -> list[Arrival]:
    return [arriving(at, f"{group}-{number}", cpu=cpu, group=group) for number in range(count)]


def test_each_member_has_one_decision_with_the_members_before_it_on_their_nodes(path: Path):
    recording = recorded_gangs(path, *members("three", 3))
    first, second, third = recording.decisions
    assert {each.pod: each.kind for each in recording.decisions} == {
        f"default/three-{number}": "bound" for number in range(3)
    }
    state = {pod.key: pod.spec.node_name for pod in recording.state_at(2).pods()}
    assert state == {first.pod: first.node, second.pod: second.node, third.pod: ""}


def test_what_was_tried_for_a_gang_that_does_not_fit_is_undone(path: Path):
    recording = recorded_gangs(path, *members("three", 3, cpu="2"), arriving(1, "single", cpu="2"))
    assert len({each.pod for each in recording.decisions[:3]}) == 3
    assert [(each.kind, each.node) for each in recording.decisions[:3]] == [("refused", None)] * 3
    assert "pod group is unschedulable" in recording.decisions[0].message
    assert "Insufficient cpu" in recording.decisions[2].message
    assert replay(recording, None, catalogue()).differing == []
    single = next(each for each in recording.decisions if each.pod == "default/single")
    assert all(not pod.spec.node_name for pod in recording.state_at(single.index).pods())


def test_decisions_about_members_are_reproduced_with_the_recorded_gates(path: Path):
    arrivals = [*members("three", 3), *members("two", 2, at=5), arriving(9, "single", cpu="100m")]
    recording = recorded_gangs(path, *arrivals)
    result = replay(recording, None, catalogue())
    assert (result.differing, result.skipped) == ([], {})
    assert result.same == len(recording.decisions) > 6
    assert recording.gates.enabled() > {"GenericWorkload", "GangScheduling"}


def test_decisions_about_a_placement_are_shown_and_not_taken_again(path: Path):
    recording = recorded_gangs(path, *members("two", 2), gates=TOPOLOGY, topology_key="rack")
    assert len({each.node for each in recording.decisions}) == 1
    assert sorted(each.pod for each in recording.decisions) == ["default/two-0", "default/two-1"]
    assert replay(recording, None, catalogue()).skipped == {LIMITED: 2}


def test_a_trial_leaves_no_rows(path: Path):
    recording = recorded_gangs(path, *members("two", 2), gates=TOPOLOGY, topology_key="rack")
    changes = [type(row) for row in recording.history() if isinstance(row, rows.Assumed | rows.Forgotten)]
    assert changes == []
