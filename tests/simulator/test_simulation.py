"""A simulation takes the scheduler's decisions at the times at which they would be taken."""

from __future__ import annotations

import gc

import msgspec
import pytest
from tests.simulator.scenarios import a_cluster_of, arriving, bound, simulated

from mooring.base.errors import OperatorMistake
from mooring.framework import Cycle, NodeView, Plugin, Pod, Refusal, Wait
from mooring.simulator import Arrival, Cluster, Workload, profile, simulate
from mooring.simulator.simulation import Ties
from mooring.state import State
from mooring.testing import a_constraint, a_pod, a_term, pod_rules


def test_pods_are_bound_when_they_arrive():
    outcome = simulated(a_cluster_of("a", "b"), arriving(0, "first"), arriving(30, "second"))
    assert {name: at for name, (at, _) in bound(outcome).items()} == {"first": 0.0, "second": 30.0}
    assert {node for _, node in bound(outcome).values()} == {"a", "b"}
    assert (outcome.attempts, outcome.preemptions, outcome.ended_at) == (2, 0, 30.0)


def test_a_pod_that_does_not_fit_is_bound_when_another_ends():
    outcome = simulated(a_cluster_of("a"), arriving(0, "first", seconds=200), arriving(10, "second"))
    assert bound(outcome) == {"first": (0.0, "a"), "second": (200.0, "a")}
    second = outcome.pods[1]
    assert (second.waited_seconds, second.attempts) == (190.0, 2)
    assert outcome.pods[0].ended_at == 200.0


def test_an_unschedulable_pod_is_retried_after_five_minutes():
    outcome = simulated(a_cluster_of("a"), arriving(0, "first", seconds=400), arriving(10, "second"))
    assert outcome.pods[1].attempts == 3


def test_a_pod_is_popped_before_its_backoff_ends_where_no_other_is_active():
    outcome = simulated(a_cluster_of("a"), arriving(0, "first", seconds=10.2), arriving(10, "second"))
    assert bound(outcome)["second"] == (10.2, "a")


def test_a_pod_whose_attempt_failed_backs_off_before_the_next():
    outcome = simulated(a_cluster_of("a"), arriving(0, "web"), configuration=enabled("Shaky"), plugins=(Shaky,))
    at, _ = bound(outcome)["web"]
    assert 1.0 <= at <= 2.0  # the initial backoff is one second, and ends at whole seconds


def test_pods_that_never_fit_stay_pending_with_the_reason():
    outcome = simulated(a_cluster_of("a"), arriving(0, "large", cpu="2"), arriving(0, "small"))
    assert [pod.name for pod in outcome.pending] == ["large"]
    [(reason, count)] = outcome.pending_reasons
    assert count == 1
    assert reason.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_a_pod_of_higher_priority_preempts():
    outcome = simulated(a_cluster_of("a"), arriving(0, "low", priority=1), arriving(60, "high", priority=10))
    low, high = outcome.pods
    assert (low.is_preempted, low.ended_at) == (True, 60.0)
    assert (high.node, outcome.preemptions) == ("a", 1)


def test_running_and_pending_pods_of_the_cluster_count():
    running = a_pod("running", uid="running", cpu="1", node="a")
    waiting = a_pod("waiting", uid="waiting", cpu="1")
    outcome = simulated(a_cluster_of("a", "b", pods=(running, waiting)), arriving(5, "late"))
    assert bound(outcome) == {"waiting": (0.0, "b")}
    assert [pod.name for pod in outcome.pending] == ["late"]


def test_use_is_that_of_all_nodes_over_the_whole_time():
    outcome = simulated(a_cluster_of("a", "b"), arriving(0, "short", seconds=50), arriving(100, "last"))
    assert outcome.use["cpu"].mean == pytest.approx(0.25)  # one of two for the first half
    assert outcome.use["cpu"].peak == 0.5
    assert [(sample.at, sample.running) for sample in outcome.timeline] == [(0.0, 1), (50.0, 0), (100.0, 1)]


def test_the_same_scenario_has_the_same_outcome_to_the_byte():
    def once() -> bytes:
        arrivals = [arriving(number * 0.5, f"pod-{number}", seconds=3 + number % 7, cpu="300m") for number in range(60)]
        return msgspec.json.encode(simulated(a_cluster_of("a", "b", "c"), *arrivals))

    assert once() == once()


class Patient(Plugin):
    """Lets every pod wait on permit, which nothing allows."""

    def permit(self, pod, node, cycle):
        return Wait(20.0)


class Broken(Plugin):
    """Fails on every pod."""

    def filter(self, pod, node, cycle):
        raise KeyError("zone")


class Shaky(Plugin):
    """Fails on the first attempt."""

    def pre_filter(self, pod, cycle):
        if cycle.attempt == 1:
            raise OSError("try again")


class Picky(Plugin):
    """Rejects pods as a whole."""

    def pre_filter(self, pod, cycle):
        return Refusal("not today")


def enabled(name: str) -> str:
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {{multiPoint: {{enabled: [{{name: {name}}}]}}}}
"""


def test_waiting_on_permit_takes_its_time():
    outcome = simulated(a_cluster_of("a"), arriving(0, "web"), configuration=enabled("Patient"), plugins=(Patient,))
    assert outcome.ended_at == 0.0
    assert [pod.name for pod in outcome.pending] == ["web"]


def test_a_plugin_that_raises_leaves_its_pods_pending_with_its_name():
    outcome = simulated(a_cluster_of("a"), arriving(0, "web"), configuration=enabled("Broken"), plugins=(Broken,))
    [(reason, _)] = outcome.pending_reasons
    assert 'running "Broken" filter plugin' in reason
    assert "zone" in reason


def test_a_plugin_class_can_be_passed_directly():
    outcome = simulated(a_cluster_of("a"), arriving(0, "web"), configuration=enabled("Picky"), plugins=(Picky,))
    [(reason, _)] = outcome.pending_reasons
    assert reason.startswith("0/1 nodes are available: not today.")


def test_configurations_are_compared_by_where_their_pods_are():
    arrivals = [arriving(0, "web", cpu="100m"), arriving(1, "db", cpu="100m")]
    spreading = simulated(a_cluster_of("a", "b"), *arrivals)
    packing = simulated(a_cluster_of("a", "b"), *arrivals, configuration=PACKING)
    assert len({node for _, node in bound(spreading).values()}) == 2
    assert len({node for _, node in bound(packing).values()}) == 1
    assert len(spreading.moved(packing)) == 1
    assert spreading.moved(spreading) == []


PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins:
    score: {disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]}
"""


def test_two_pods_of_one_name_are_refused():
    running = a_pod("web", uid="running", cpu="1", node="a")
    with pytest.raises(OperatorMistake, match="There are two pods default/web"):
        simulated(a_cluster_of("a", pods=(running,)), arriving(0, "web"))


def test_a_configuration_with_a_mistake_is_refused():
    with pytest.raises(OperatorMistake):
        simulated(a_cluster_of("a"), arriving(0, "web"), configuration=enabled("Pickky"))


NODE_NAMES = [f"n{number}" for number in range(8)]


def nodes_by_ties(ties: Ties) -> list[str | None]:
    pods = [arriving(float(number), f"pod-{number}", cpu="1m") for number in range(6)]
    result = simulate(a_cluster_of(*NODE_NAMES, cpu="1000"), pods, profile(disable=["*"], enable=[AllEqual]), ties=ties)
    return [pod.node for pod in result.pods]


class AllEqual(Plugin):
    """Finds all nodes equally good."""

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 7


def test_of_several_best_nodes_one_after_the_other_is_chosen():
    assert nodes_by_ties(None) == NODE_NAMES[1:7]


def test_of_several_best_nodes_the_first_can_be_chosen():
    assert nodes_by_ties("first") == ["n0"] * 6


def test_of_several_best_nodes_a_seed_chooses():
    assert nodes_by_ties(7) == nodes_by_ties(7) != nodes_by_ties(8)


async def test_it_runs_where_an_event_loop_runs_as_in_a_notebook():
    assert bound(simulate(a_cluster_of("n1"), [arriving(0.0, "web")])) == {"web": (0.0, "n1")}


def test_pods_can_be_observed_when_they_are_bound_and_when_they_end():
    bound_at: list[tuple[str, str, str, float]] = []
    ended_at: list[tuple[str, float]] = []
    simulate(
        a_cluster_of("a"),
        [arriving(0, "first", seconds=200), arriving(10, "second")],
        profile(enable=[Labelling]),
        on_bound=lambda pod, now: bound_at.append((pod.name, pod.spec.node_name, pod.labels["place"], now)),
        on_ended=lambda pod, now: ended_at.append((pod.name, now)),
    )
    assert bound_at == [("first", "a", "on-a", 0.0), ("second", "a", "on-a", 200.0)]
    assert ended_at == [("first", 200.0)]


class Labelling(Plugin):
    """Labels pods with their node."""

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        cycle.add_to_binding(self, labels={"place": f"on-{node.name}"})
        return None


def test_pods_that_arrive_together_are_bound_one_after_the_other():
    outcome = simulated(a_cluster_of("a"), *(arriving(0.0, f"p{number}", seconds=60.0) for number in range(3)))
    assert bound(outcome) == {"p0": (0.0, "a"), "p1": (60.0, "a"), "p2": (120.0, "a")}


class NeverPermits(Plugin):
    """Refuses every pod when it has its node."""

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        return Refusal("not today")


def test_pods_that_wake_each_other_for_ever_are_left_pending():
    """Each one's room is free again when it is refused, which is an event for the others."""
    result = simulate(
        a_cluster_of("a", cpu="8"), [arriving(0, "one"), arriving(0, "two")], profile(enable=[NeverPermits])
    )
    assert [pod.name for pod in result.pending] == ["one", "two"]
    assert all("not today" in pod.message for pod in result.pending)


def test_a_simulation_leaves_nothing_behind_but_its_result():
    """Pods are simulated again and again, and what plugins note about them must not hold the state of each run."""
    labels = {"app": "web"}
    apart = pod_rules(away=[a_term(labels, key="zone")])
    spread = [a_constraint("zone", labels=labels)]
    workload = [
        arriving(0, "web", labels=labels, affinity=apart, spread=spread),
        arriving(0, "plain"),
    ]
    before = states()
    result = simulate(a_cluster_of("a", "b"), workload)
    assert result.attempts == 2
    assert states() == before


def states() -> int:
    """How many there are in this process."""
    gc.collect()
    return sum(isinstance(found, State) for found in gc.get_objects())


def test_a_time_limit_ends_the_simulation_with_what_was_computed():
    workload = Workload([Arrival(float(number), a_pod(f"pod-{number}")) for number in range(50)])
    outcome = simulate(Cluster.of_nodes(2), workload, time_limit=0.0)
    assert outcome.is_interrupted
    assert len(outcome.pods) < 50


def test_a_gated_pod_is_pending_for_its_gates():
    result = simulate(a_cluster_of("a"), [Arrival(0.0, a_pod("held", gates=["example.com/wait"]))])
    assert result.pending_reasons == [("waiting for scheduling gates: [example.com/wait]", 1)]
