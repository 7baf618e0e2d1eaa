"""What is requested, how fragmented the rest is, and how evenly nodes are used: each figure against the plain rule."""

from __future__ import annotations

import random
import statistics

import pytest

from mooring.simulator.usage import MOST_SAMPLES, Usage, typical_pods
from mooring.testing import a_node_object

NODES = {"a": "4", "b": "4", "c": "8"}


def a_usage(*typical: dict[str, int], **nodes: str) -> Usage:
    nodes = nodes or NODES
    return Usage([a_node_object(name, cpu=cpu, memory="1Ki") for name, cpu in nodes.items()], typical_pods(typical))


TYPICAL = {
    "the pod in the middle": ([1, 2, 9], 2),
    "of two, the smaller": ([1, 9], 1),
    "pods that request none of it do not count": ([0, 0, 0, 5], 5),
    "pods that are alike count each": ([1, 9, 9], 9),
}


@pytest.mark.parametrize(("requested", "middle"), TYPICAL.values(), ids=TYPICAL.keys())
def test_the_typical_pod_is_the_one_in_the_middle(requested: list[int], middle: int):
    assert typical_pods({"cpu": amount} for amount in requested) == {"cpu": {"cpu": middle}}


def test_each_resource_has_a_typical_pod_of_its_own():
    """Pods without a GPU fit nodes without one: those are not fragmented for their sake."""
    plain, with_gpu = {"cpu": 1000}, {"cpu": 4000, "nvidia.com/gpu": 1}
    assert typical_pods([plain, plain, with_gpu]) == {"cpu": plain, "nvidia.com/gpu": with_gpu}


def test_of_pods_that_request_as_much_the_one_in_the_middle_is_typical():
    """One huge pod among many that request the same memory is not what they are like."""
    pods = [{"cpu": cpu, "memory": 1} for cpu in (1, 2, 3, 900)] + [{"cpu": 1, "memory": 8}] * 3
    assert typical_pods(pods)["memory"] == {"cpu": 2, "memory": 1}


def test_what_is_free_where_a_typical_pod_does_not_fit_is_fragmented():
    usage = a_usage({"cpu": 3000})
    usage.add(0, "a", {"cpu": 2000})  # 2 of 4 are left: too few
    usage.add(0, "b", {"cpu": 1000})  # 3 are left
    usage.finish(10)
    assert usage.timeline[-1].fragmentation == {"cpu": round(2 / 13, 6)}
    assert usage.mean_fragmentation("cpu") == pytest.approx(2 / 13)


def test_a_node_that_lacks_another_resource_of_the_typical_pod_is_fragmented():
    usage = a_usage({"cpu": 1000, "memory": 2048}, a="4")
    usage.finish(10)
    assert usage.timeline[-1].fragmentation["cpu"] == 1.0


def test_a_cluster_without_anything_free_is_not_fragmented():
    usage = a_usage({"cpu": 3000}, a="1")
    usage.add(0, "a", {"cpu": 1000})
    usage.finish(1)
    assert usage.timeline[-1].fragmentation == {"cpu": 0.0}


def test_a_pod_that_is_deleted_before_it_is_bound_frees_nothing():
    usage = a_usage({"cpu": 1000})
    usage.arrive(0)
    usage.withdraw(1)
    usage.finish(2)
    assert (usage.running, usage.pending) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_sums_that_are_kept_equal_those_from_scratch(seed: int):
    """However pods come and go, in whichever order."""
    generator = random.Random(seed)
    wanted = {"cpu": 1500, "memory": 100}
    usage = a_usage(wanted)
    running: list[tuple[str, dict[str, int]]] = []
    integral = before = 0.0
    for now in range(200):
        free = {name: int(cpu) * 1000 for name, cpu in NODES.items()}
        memory = dict.fromkeys(NODES, 1024)
        for node, amounts in running:
            free[node] -= amounts["cpu"]
            memory[node] -= amounts["memory"]
        stranded = sum(free[node] for node in NODES if free[node] < wanted["cpu"] or memory[node] < wanted["memory"])
        before = stranded / sum(free.values()) if now else 0.0
        if running and generator.random() < 0.45:
            usage.remove(now, *running.pop(generator.randrange(len(running))))
        else:
            node = generator.choice(list(NODES))
            amounts = {"cpu": min(free[node], generator.choice((500, 1000))), "memory": min(memory[node], 90)}
            usage.add(now, node, amounts)
            running.append((node, amounts))
        integral += before if now else 0.0
    usage.finish(200)
    free = {name: int(cpu) * 1000 for name, cpu in NODES.items()}
    for node, amounts in running:
        free[node] -= amounts["cpu"]
    shares = [1 - free[name] / (int(cpu) * 1000) for name, cpu in NODES.items()]
    assert usage.timeline[-1].imbalance["cpu"] == pytest.approx(statistics.pstdev(shares), abs=2e-6)
    memory = dict.fromkeys(NODES, 1024)
    for node, amounts in running:
        memory[node] -= amounts["memory"]
    stranded = sum(free[node] for node in NODES if free[node] < wanted["cpu"] or memory[node] < wanted["memory"])
    last = stranded / sum(free.values())
    assert usage.timeline[-1].fragmentation["cpu"] == pytest.approx(last, abs=1e-6)
    assert usage.mean_fragmentation("cpu") == pytest.approx((integral + last) / 200)


def test_a_timeline_stays_small():
    usage = a_usage({"cpu": 1000})
    for now in range(10 * MOST_SAMPLES):
        usage.arrive(now)
    assert MOST_SAMPLES / 4 < len(usage.timeline) <= MOST_SAMPLES
    assert [sample.at for sample in usage.timeline] == sorted(sample.at for sample in usage.timeline)
