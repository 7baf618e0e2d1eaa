"""The policies of the fragmentation example score and choose devices as specified, and runs are whole."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.fragmentation.__main__ import main
from examples.fragmentation.arrivals import order_of, ranked
from examples.fragmentation.evaluation import POLICIES, run, run_trace
from examples.fragmentation.generator import generate
from examples.fragmentation.go_random import LONG, GoRandom, words_of
from examples.fragmentation.policies.devices import (
    COUNT,
    DEVICES,
    GPU,
    MILLI,
    MODEL,
    MODELS,
    NO_DEVICES,
    WHOLE,
    WRONG_MODEL,
    GpuSharing,
)
from examples.fragmentation.policies.fragmentation import Fragmentation, TypicalPod
from examples.fragmentation.published import compared
from examples.fragmentation.sampling import LOADS, Samples
from examples.fragmentation.timed import run_on_clock, timed_arrivals
from examples.fragmentation.trace import generator_of, models_of, read_trace, typical_pods

from mooring.base.errors import OperatorMistake
from mooring.framework import NodeView, Pod, Skip
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.testing import a_cluster, a_cycle, a_node, a_plugin, a_pod, refused_at_once, refused_one_by_one

TYPICAL = [
    TypicalPod(cpu_milli=1000, gpu_milli=1000, gpu_count=1, weight=0.5),
    TypicalPod(cpu_milli=1000, gpu_milli=500, gpu_count=1, weight=0.5),
]


def node(name: str = "node", *held: str, gpus: int = 8, cpu: str = "64", model: str = "M1") -> NodeView:
    """A node on which pods hold these devices."""
    running = [a_pod(labels={DEVICES: each}) for each in held]
    return a_node(name, cpu=cpu, resources={GPU: str(gpus)}, labels={MODEL: model}, running=running)


def wanting(count: int = 1, milli: int = WHOLE, cpu: str = "4", models: str = "") -> Pod:
    annotations = {COUNT: str(count), MILLI: str(milli)} | ({MODELS: models} if models else {})
    return a_pod(cpu=cpu, annotations=annotations)


def a_policy(name: str) -> GpuSharing:
    return a_plugin(POLICIES[name], **({"typical_pods": TYPICAL} if name == "FGD" else {}))


def scores(policy: str, pod: Pod, node: NodeView) -> tuple[int, int]:
    """In the plain form and in the one for many nodes."""
    plugin, cluster = a_policy(policy), a_cluster(node)
    cycle = a_cycle(pod, cluster)
    demand = plugin.pre_filter(pod, cycle)
    if not isinstance(demand, Skip):
        cycle.set_filter_state(plugin, demand)
    [there] = cluster.nodes
    return plugin.score(pod, there, cycle), int(plugin.score_nodes(pod, cluster.nodes, cycle)[0])


SCORES: dict[str, tuple[str, Pod, NodeView, int]] = {
    "BestFit: what is left of both, halved": ("BestFit", wanting(), node(), 32),
    "BestFit: a pod without GPU": ("BestFit", a_pod(cpu="4"), node(), 26),
    "DotProd: free times wanted, halved": ("DotProd", wanting(), node(), 92),
    "GpuClustering: an empty node": ("GpuClustering", wanting(), node(), 25),
    "GpuClustering: only other classes": ("GpuClustering", wanting(), node("node", "460-0"), 1),
    "GpuClustering: only the same class": ("GpuClustering", wanting(1, 300), node("node", "460-0"), 76),
    "GpuClustering: the same class among others": (
        "GpuClustering",
        wanting(1, 300),
        node("node", "460-0", "1000-1"),
        54,
    ),
    "GpuClustering: whole devices of another number": ("GpuClustering", wanting(2), node("node", "1000-1"), 3),
    "GpuClustering: a pod without GPU": ("GpuClustering", a_pod(), node("node", "460-0"), 0),
    "GpuPacking: a free node": ("GpuPacking", wanting(), node(), 25),
    "GpuPacking: a free node of two": ("GpuPacking", wanting(), node(gpus=2), 31),
    "GpuPacking: a device in use": ("GpuPacking", wanting(1, 460), node("node", "460-0"), 95),
    "GpuPacking: a free device of a node in use": ("GpuPacking", wanting(1, 600), node("node", "460-0"), 49),
    "GpuPacking: several free devices of a node in use": ("GpuPacking", wanting(3), node("node", "460-0"), 47),
    "FGD: a pod that splits a free device": ("FGD", wanting(1, 500), node(gpus=2), 43),
    "FGD: a pod that fills the rest of a device": ("FGD", wanting(1, 500), node("node", "500-0", gpus=2), 56),
    "FGD: nothing changes": ("FGD", wanting(), node(gpus=2), 50),
    "FGD: CPU that no typical pod finds any more": ("FGD", a_pod(cpu="4"), node(gpus=2, cpu="4"), 11),
}


@pytest.mark.parametrize(("policy", "pod", "node", "expected"), SCORES.values(), ids=SCORES.keys())
def test_a_policy_scores_as_specified(policy: str, pod: Pod, node: NodeView, expected: int):
    assert scores(policy, pod, node) == (expected, expected)


REFUSALS: dict[str, tuple[Pod, NodeView, set[str]]] = {
    "a device has exactly enough": (wanting(1, 540), node("node", "460-0", gpus=1), set()),
    "a device has too little": (wanting(1, 541), node("node", "460-0", gpus=1), {NO_DEVICES}),
    "whole devices must be free": (wanting(2), node("node", "1-0", gpus=2), {NO_DEVICES}),
    "another model": (wanting(models="M2|M3"), node(), {WRONG_MODEL}),
    "one of the models": (wanting(models="M2|M1"), node(), set()),
    "both": (wanting(9, models="M2"), node(), {WRONG_MODEL, NO_DEVICES}),
    "a pod without GPU fits a node without": (a_pod(), node(gpus=0), set()),
}


@pytest.mark.parametrize(("pod", "node", "reasons"), REFUSALS.values(), ids=REFUSALS.keys())
def test_nodes_without_room_on_devices_are_rejected(pod: Pod, node: NodeView, reasons: set[str]):
    plugin, cluster = a_plugin(GpuSharing), a_cluster(node)
    refused = refused_one_by_one(plugin, pod, cluster)
    assert refused == refused_at_once(plugin, pod, cluster)
    assert {reason for _, each in refused.values() for reason in each} == reasons


CHOICES = {
    "whole devices in their order": ("BestFit", wanting(2), ["500-0"], "1000-1-2"),
    "the fullest device that fits": ("BestFit", wanting(1, 300), ["200-0", "600-2", "800-3"], "300-2"),
    "of equals the first": ("GpuPacking", wanting(1, 300), ["600-2", "600-3"], "300-2"),
    "FGD: where least is fragmented": ("FGD", wanting(1, 500), ["300-0", "500-2"], "500-2"),
    "FGD: of equals the first": ("FGD", wanting(1, 500), ["500-2", "500-3"], "500-2"),
}


@pytest.mark.parametrize(("policy", "pod", "held", "label"), CHOICES.values(), ids=CHOICES.keys())
def test_a_policy_chooses_devices_as_specified(policy: str, pod: Pod, held: list[str], label: str):
    decision = a_cluster(node("node", *held), plugins=[a_policy(policy)]).schedule(pod)
    added = decision.cycle.added_to_binding
    assert added is not None
    assert added.labels == {DEVICES: label}


def test_devices_of_pods_that_are_not_bound_yet_count():
    cluster = a_cluster(node(gpus=1), plugins=[a_policy("BestFit")])
    assert cluster.schedule(wanting(1, 600)).node == "node"
    assert cluster.schedule(wanting(1, 600)).node is None
    assert cluster.schedule(wanting(1, 400)).node == "node"


def test_annotations_that_cannot_be_read_refuse_the_pod():
    cluster = a_cluster(node(), plugins=[a_policy("BestFit")])
    assert "must be whole numbers" in cluster.schedule(a_pod(annotations={COUNT: "many"})).message
    assert "one part of a device or whole ones" in cluster.schedule(wanting(2, 500)).message


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "Random"])
def test_results_that_are_kept_are_those_of_now(policy: str):
    plugins = [a_plugin(NodeResourcesFit), a_policy(policy)]
    names = [f"node-{number}" for number in range(12)]
    cluster = a_cluster(*(node(name, gpus=1 + at % 4) for at, name in enumerate(names)), plugins=plugins)
    for number in range(30):
        pod = [wanting(1, 300), wanting(1, 500), wanting(2), a_pod(cpu="2")][number % 4]
        cluster.schedule(pod)
        cluster.verify(pod)


def test_fragmentation_is_the_same_for_one_node_and_for_many():
    models = ["M1", "M2", "M3", "other"]
    typical = [
        TypicalPod(cpu_milli=4000, weight=0.3),
        TypicalPod(cpu_milli=2000, gpu_milli=300, gpu_count=1, weight=0.25),
        TypicalPod(cpu_milli=8000, gpu_milli=1000, gpu_count=2, models="M1|M2", weight=0.2),
        TypicalPod(cpu_milli=1000, gpu_milli=640, gpu_count=1, models="M3", weight=0.15),
    ]
    measure, draw = Fragmentation(typical), np.random.default_rng(3)
    left = draw.choice([0, 120, 300, 640, 1000], (200, 4))
    cpu = draw.choice([0, 1500, 3000, 9000], 200)
    chosen = draw.integers(0, 4, 200)
    at_once = measure.of_many(cpu, left, np.array([measure.number(models[each]) for each in chosen]))
    rows = zip(cpu.tolist(), left.tolist(), chosen, strict=True)
    assert at_once.tolist() == [measure.of(free, devices, models[each]) for free, devices, each in rows]


def test_fragmentation_counts_what_typical_pods_cannot_use():
    measure = Fragmentation(
        [TypicalPod(cpu_milli=1000, weight=0.25), TypicalPod(cpu_milli=1000, gpu_milli=600, gpu_count=1, weight=0.75)]
    )
    # A quarter of the weight wants no GPU; the rest can use what is left but for the device with 500.
    assert measure.of(2000, [1000, 500], "M1") == 0.25 * 1500 + 0.75 * 500
    assert measure.of(999, [1000, 500], "M1") == 1500
    assert measure.of(2000, [500, 500], "M1") == 1000


# Random numbers, order and samples


def test_words_follow_the_recurrence():
    words = words_of(7)
    generator = GoRandom(words)
    generator.skip(LONG)
    expected = (words[0] + words[LONG - 273]) % 2**64
    assert generator.below(2**31) == expected % 2**63 >> 32


def test_shuffles_and_permutations_keep_every_item():
    generator = GoRandom(words_of(1))
    items = list(range(100))
    generator.shuffle(items)
    assert items != sorted(items) == list(range(100))
    assert sorted(generator.permutation(50)) == list(range(50))
    assert {generator.below(6) for _ in range(200)} == set(range(6))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generate(tmp_path)
    return tmp_path


def test_pods_arrive_once_each_and_then_as_copies_up_to_the_load(folder: Path):
    trace = read_trace(folder, "default")
    total = sum(pod.total_gpu_milli for pod in trace.pods)
    load = 1.5 * total / trace.gpu_capacity
    order = order_of(trace, generator_of(folder, 42), load)
    assert sorted(order.arrivals[: len(trace.pods)]) == list(range(len(trace.pods)))
    arrived = sum(trace.pods[place].total_gpu_milli for place in order.arrivals)
    assert 1.4 * total < arrived < load * trace.gpu_capacity + 8 * WHOLE
    assert sorted(order.ranks) == list(range(len(trace.nodes)))
    fewer = order_of(trace, generator_of(folder, 42), 0.5 * load)
    assert sum(trace.pods[place].total_gpu_milli for place in fewer.arrivals) <= 0.5 * load * trace.gpu_capacity


def test_the_value_at_a_load_is_the_mean_of_its_samples():
    samples = Samples(1000, np.array([4, 14, 16, 40]), np.array([4, 10, 20, 30]), np.array([0.0, 10.0, 30.0, 97.0]))
    curves = samples.curves()
    assert curves["alloc"][:2] == [0.4, 1.0]
    assert (curves["alloc"][2], curves["alloc"][3], curves["alloc"][4]) == (2.0, 2.5, 3.0)  # none at 3: those around it
    assert curves["frag"][4] == 9.7
    assert curves["frag_ratio"][4] == 10.0
    assert math.isnan(curves["alloc"][100])


def naive_best_fit(trace: Any, order: Any) -> list[int]:
    """GPU in use after every arrival, by the formulas alone."""
    nodes: list[list[Any]] = [
        [each.cpu_milli, each.memory_mib, [WHOLE] * each.num_gpu, each.model] for each in ranked(trace, order)
    ]
    used, samples = 0, []
    for place in order.arrivals:
        pod, best = trace.pods[place], None
        for each in nodes:
            cpu, memory, left, model = each
            fits = [device for device, milli in enumerate(left) if milli >= pod.gpu_milli] if pod.num_gpu else []
            if cpu < pod.cpu_milli or memory < pod.memory_mib or len(fits) < pod.num_gpu:
                continue
            if pod.num_gpu and pod.gpu_spec and model not in pod.gpu_spec.split("|"):
                continue
            rest = (cpu - pod.cpu_milli) / 128000 / 2 + (sum(left) - pod.total_gpu_milli) / 8000 / 2
            score = int(100 * (1 - rest))
            if best is None or score > best[0]:
                best = (score, each, sorted(fits, key=left.__getitem__) if pod.gpu_milli < WHOLE else fits)
        if best is not None:
            _, chosen, devices = best
            chosen[0] -= pod.cpu_milli
            chosen[1] -= pod.memory_mib
            for device in devices[: pod.num_gpu]:
                chosen[2][device] -= pod.gpu_milli
            used += pod.total_gpu_milli
        samples.append(used)
    return samples


def test_a_run_places_pods_as_the_formulas_do(folder: Path):
    trace = read_trace(folder, "default")
    order = order_of(trace, generator_of(folder, 42), 1.3)
    made = run_trace(trace, order, "BestFit", 42)
    assert made.samples.used.tolist() == naive_best_fit(trace, order)
    assert made.dropped > 0


@pytest.mark.parametrize("policy", list(POLICIES))
def test_every_policy_runs_a_trace_and_again_alike(policy: str, folder: Path):
    once, again = (run(folder, "default", policy, 42) for _ in range(2))
    assert repr(once.samples.curves()) == repr(again.samples.curves())
    assert once.dropped == again.dropped
    assert 0 < once.samples.used[-1] <= once.samples.capacity
    assert once.samples.arrived[-1] > once.samples.capacity


def test_typical_pods_are_the_most_frequent_up_to_a_share(folder: Path):
    pods = read_trace(folder, "default").pods
    typical = typical_pods(pods)
    weights = [each.weight for each in typical]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    kinds = {(each.cpu_milli, each.gpu_milli, each.gpu_count, each.models) for each in typical}
    covered = sum((pod.cpu_milli, pod.gpu_milli, pod.num_gpu, models_of(pod)) in kinds for pod in pods)
    assert 0.95 * len(pods) <= covered < len(pods)


# The clock


def test_on_the_clock_pods_wait_and_devices_are_used_again(folder: Path):
    trace = read_trace(folder, "default")
    made = run_on_clock(trace, generator_of(folder, 1), "FGD", 1, load=0.8, copies=1)
    assert made.pods == 120
    assert made.waited > 0
    assert 0.3 < made.allocated < 1
    assert made.mean_wait_seconds > 0


def test_a_pod_runs_as_long_as_it_did(folder: Path):
    trace = read_trace(folder, "default")
    arrivals = timed_arrivals(trace, 1, generator_of(folder, 1))
    by_name = {pod.name: pod for pod in trace.pods}
    assert [each.at for each in arrivals] == sorted(each.at for each in arrivals)
    for each in arrivals:
        row = by_name[each.pod.name]
        if each.duration is not None:
            assert each.duration == (row.deletion_time or 0) - (row.scheduled_time or 0)
        else:
            assert each.at + (row.deletion_time or 0) - (row.scheduled_time or 0) > arrivals[-1].at


# The command


def test_the_command_sweeps_compares_and_draws(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    options = [
        "--policies",
        "BestFit,GpuPacking",
        "--seeds",
        "42",
        "--workers",
        "1",
        "--charts",
        str(tmp_path / "charts"),
    ]
    out = ["--out", str(tmp_path / "results.parquet")]
    assert main([str(folder), *options, *out]) == 0
    assert "no published curves" in capsys.readouterr().out
    assert len(list((tmp_path / "charts").glob("default-*.svg"))) == 3
    assert main([str(folder), *options, *out]) == 0
    assert "2 of them in an earlier call" in capsys.readouterr().out


def test_wrong_options_are_reported_together(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(folder), "--policies", "FDG,BestFid"]) == 2
    printed = capsys.readouterr().err
    assert 'Did you mean "FGD"?' in printed
    assert 'Did you mean "BestFit"?' in printed
    assert main([str(folder), "--seeds", "x"]) == 2
    assert main([str(folder / "none")]) == 2


def test_parts_of_several_devices_are_refused(folder: Path):
    (folder / "openb_pod_list_bad.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-1,1000,1024,2,500\n", encoding="utf-8"
    )
    with pytest.raises(OperatorMistake, match="pod pod-1"):
        read_trace(folder, "bad")


def test_a_comparison_counts_equal_points():
    row = {"workload": "w", "policy": "P", "seed": 42} | {
        name: [1.0] * len(LOADS) for name in ("alloc", "frag", "frag_ratio")
    }
    published = {("w", "P", 42, name): ["1.00"] * len(LOADS) for name in ("alloc", "frag")}
    published["w", "P", 42, "frag_ratio"] = ["1.01"] + ["1.00"] * (len(LOADS) - 1)
    [line] = compared([row], published)
    assert "alloc 131, frag 131, frag_ratio 130" in line


def test_a_published_list_is_not_replaced_by_a_generated_one(tmp_path: Path):
    generate(tmp_path)
    generate(tmp_path)  # the same rows
    published = tmp_path / "openb_pod_list_default.csv"
    published.write_text("name,cpu_milli\n")
    with pytest.raises(OperatorMistake, match="exists and has other rows; name a new folder"):
        generate(tmp_path)
    assert published.read_text() == "name,cpu_milli\n"
