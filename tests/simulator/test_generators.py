"""Generated clusters and workloads: the same seed makes the same bytes, and a document's mistakes are all reported."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator import Cluster, Workload, simulate
from mooring.simulator.generated_workload import rows_of_fields
from mooring.simulator.trace_rows import TraceRow
from mooring.simulator.trace_writer import write_trace

FIELDS: dict[str, Any] = {
    "pods": 500,
    "seed": 7,
    "arrivals": {"process": "daily", "every": "20s"},
    "runTime": {"distribution": "lognormal", "median": "10m", "sigma": 1.2},
    "classes": [
        {
            "name": "web",
            "weight": 8,
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "labels": {"app": "web"},
            "replicas": {"least": 1, "most": 5},
        },
        {
            "name": "training",
            "requests": {"cpu": 8, "nvidia.com/gpu": "1"},
            "priority": 100,
            "nodeSelector": {"gpu": ["T4", "P100"]},
            "runTime": {"distribution": "exponential", "mean": "2h"},
        },
    ],
}


def rows(**fields: Any) -> list[TraceRow]:
    return list(rows_of_fields(**fields))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


DIGESTS = {
    "poisson": ({"pods": 1000, "seed": 1}, "8628b22c82d8f002"),
    "daily, replicas, log-normal": (FIELDS, "49707a105f63e787"),
    "bursts, uniform": (
        {
            "duration": "1h",
            "seed": 2,
            "arrivals": {"process": "bursts", "every": "5m", "size": {"least": 2, "most": 9}, "spread": "10s"},
            "runTime": {"distribution": "uniform", "least": 10, "most": "1m"},
        },
        "d3af9211824f6d16",
    ),
}


@pytest.mark.parametrize(("fields", "expected"), DIGESTS.values(), ids=DIGESTS.keys())
def test_a_seed_makes_these_bytes_for_ever(tmp_path, fields, expected):
    """Whatever the hash seed of this process is, which is another each time."""
    write_trace(tmp_path / "workload.csv", rows_of_fields(**fields))
    assert digest(tmp_path / "workload.csv") == expected


def test_another_seed_makes_other_pods():
    assert rows(pods=10, seed=1) != rows(pods=10, seed=2)


def test_a_change_of_run_times_leaves_arrivals_and_classes():
    before, after = rows(pods=200, seed=5), rows(pods=200, seed=5, runTime="1m")
    assert [(row.arrival, row.name) for row in before] == [(row.arrival, row.name) for row in after]


def test_more_pods_begin_with_the_same_ones():
    assert rows(pods=100, seed=5) == rows(pods=300, seed=5)[:100]


PROCESSES = {
    "regular": ({"process": "regular", "every": "2s"}, lambda times: times == [2.0 * number for number in range(2000)]),
    "poisson": ({"every": 3}, lambda times: 2.8 < times[-1] / len(times) < 3.2),
    "bursts": (
        {"process": "bursts", "every": "10m", "size": 50, "spread": "5s"},
        lambda times: 36 <= sum(later - earlier > 5 for earlier, later in pairwise(times)) <= 39,
    ),
    "daily": (
        {"process": "daily", "every": "60s", "peak": "12h", "amplitude": 0.9},
        lambda times: sum(6 <= at / 3600 % 24 < 18 for at in times) > 0.7 * len(times),
    ),
}


@pytest.mark.parametrize(("arrivals", "holds"), PROCESSES.values(), ids=PROCESSES.keys())
def test_pods_arrive_by_the_process(arrivals, holds):
    assert holds([row.arrival for row in rows(pods=2000, seed=11, arrivals=arrivals)])


RUN_TIMES = {
    "for ever": ("forever", lambda times: set(times) == {None}),
    "a duration": ("90s", lambda times: set(times) == {90.0}),
    "fixed": ({"distribution": "fixed", "value": 30}, lambda times: set(times) == {30.0}),
    "exponential": ({"distribution": "exponential", "mean": "10m"}, lambda times: 560 < mean(times) < 640),
    "log-normal": ({"distribution": "lognormal", "median": 100, "sigma": 1}, lambda times: 92 < median(times) < 108),
    "uniform": ({"distribution": "uniform", "least": 5, "most": 15}, lambda times: 5 <= min(times) < max(times) <= 15),
}


@pytest.mark.parametrize(("run_time", "holds"), RUN_TIMES.values(), ids=RUN_TIMES.keys())
def test_pods_run_by_the_distribution(run_time, holds):
    assert holds([row.duration for row in rows(pods=2000, seed=11, runTime=run_time)])


def test_classes_have_their_shares_and_fields():
    made = rows(**{**FIELDS, "pods": 2000})
    owners = Counter(row.owner for row in made if row.owner)
    assert set(owners.values()) == {1, 2, 3, 4, 5}
    training = [row for row in made if row.priority == 100]
    assert 0.08 < len(training) / (len(training) + len(owners)) < 0.14
    assert {row.owner for row in training} == {""}
    assert dict(training[0].requests) == {"cpu": "8", "nvidia.com/gpu": "1"}
    assert dict(training[0].node_selector) == {"gpu": ("T4", "P100")}
    assert {row.labels.get("app") for row in made} == {"web", None}


def test_pods_are_as_many_as_the_document_has():
    assert len(rows(**FIELDS)) == 500
    assert all(row.arrival <= 3600 for row in rows(duration="1h", seed=1))
    assert len(rows(duration="1h", pods=3, seed=1)) == 3


def test_a_generated_workload_is_simulated():
    cluster = Cluster.generate(6, seed=1)
    outcome = simulate(cluster, Workload.generate(50, run_time="1m", seed=1))
    assert len(outcome.bound) == 50


# Clusters

KINDS: list[dict[str, Any]] = [
    {"name": "general", "weight": 2, "allocatable": {"cpu": "32"}},
    {"name": "gpu", "weight": 1, "labels": {"rack": ["r1", "r2"]}, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    {"name": "db", "count": 2, "labels": {"disk": "fast"}},
]


def test_kinds_have_their_counts_and_shares():
    nodes = Cluster.generate(22, kinds=KINDS, zones=["a", "b"], seed=7).nodes
    kinds = Counter(node.labels["node.kubernetes.io/instance-type"] for node in nodes)
    assert kinds == {"general": 13, "gpu": 7, "db": 2}
    assert Counter(node.labels["topology.kubernetes.io/zone"] for node in nodes) == {"a": 11, "b": 11}
    assert {node.labels.get("rack") for node in nodes if node.name.startswith("gpu")} == {"r1", "r2"}
    [general, *_] = [node for node in nodes if node.name.startswith("general")]
    assert (general.status.allocatable["cpu"], general.spec.taints) == ("32", ())


def test_a_seed_makes_these_nodes_for_ever():
    nodes = Cluster.generate(22, kinds=KINDS, seed=7).nodes
    drawn = [(node.name, node.labels.get("rack"), node.labels["topology.kubernetes.io/zone"]) for node in nodes]
    assert hashlib.sha256(repr(drawn).encode()).hexdigest()[:16] == "dab0958964b2efea"
    assert [node.name for node in nodes] != [node.name for node in Cluster.generate(22, kinds=KINDS, seed=8).nodes]


def test_documents_make_what_python_makes(tmp_path):
    head = {"apiVersion": "mooring.dev/v1alpha1"}
    (tmp_path / "cluster.json").write_bytes(
        msgspec.json.encode({**head, "kind": "GeneratedCluster", "seed": 7, "nodes": 22, "kinds": KINDS})
    )
    (tmp_path / "workload.yaml").write_bytes(msgspec.json.encode({**head, "kind": "GeneratedWorkload", **FIELDS}))
    cluster, workload = Cluster.read(tmp_path / "cluster.json"), Workload.read(tmp_path / "workload.yaml")
    assert {node.name: node.labels for node in cluster.nodes} == {
        node.name: node.labels for node in Cluster.generate(22, kinds=KINDS, seed=7).nodes
    }
    generated = Workload.generate(
        500, arrivals=FIELDS["arrivals"], run_time=FIELDS["runTime"], classes=FIELDS["classes"], seed=7
    )
    assert list(workload) == list(generated)


def test_a_file_may_have_manifests_and_a_generated_workload(tmp_path):
    (tmp_path / "workload.yaml").write_text(
        """
apiVersion: mooring.dev/v1alpha1
kind: GeneratedWorkload
pods: 3
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: nginx}]}
"""
    )
    names = [arrival.pod.name for arrival in Workload.read(tmp_path / "workload.yaml")]
    assert (len(names), names[0]) == (4, "web")


# Mistakes

BAD_WORKLOADS: dict[str, tuple[str, list[tuple[str, int, str]]]] = {
    "no number of pods": ("seed: 1", [("pods", 1, "is missing: how many pods arrive")]),
    "fields that are none": ("pods: 1\nrate: 3", [("rate", 4, "is not a field of GeneratedWorkload.")]),
    "too many pods": ("duration: 1000h\narrivals: {every: 1ms}", [("duration", 3, "at most 10,000,000 pods")]),
    "arrivals": (
        "pods: 1\narrivals:\n  process: posson\n  every: 0s\n  spread: 1s",
        [
            ("arrivals.process", 5, 'Did you mean "poisson"?'),
            ("arrivals.every", 6, "more than 0"),
            ("arrivals.spread", 7, "is not a field"),
        ],
    ),
    "a burst's size": (
        "pods: 1\narrivals: {process: bursts, size: {least: 5, most: 1}}",
        [("arrivals.size.most", 4, "at least 5")],
    ),
    "run times": (
        "pods: 1\nrunTime: {distribution: lognormal, mean: 3}",
        [("runTime.median", 4, "is missing"), ("runTime.mean", 4, "is not a field")],
    ),
    "a run time that is none": ("pods: 1\nrunTime: long", [("runTime", 4, "must be a duration such as 90s")]),
    "classes": (
        "pods: 1\nclasses:\n- weight: 0\n  requests: {cpu: x}\n- name: a\n"
        "- name: a\n  labels: {a: 1}\n  replicas: 0\n- 3",
        [
            ("classes", 4, 'has two classes "a"'),
            ("classes[0].name", 5, "is missing"),
            ("classes[0].weight", 5, "more than 0"),
            ("classes[0].requests.cpu", 6, "must be a quantity"),
            ("classes[2].labels.a", 9, "write it in quotes"),
            ("classes[2].replicas", 10, "from 1 to"),
            ("classes[3]", 11, "must be a mapping"),
        ],
    ),
    "no classes": ("pods: 1\nclasses: []", [("classes", 4, "at least one class")]),
    "numbers that are none": (
        "pods: many\nseed: 1.5\nnamePrefix: A",
        [("pods", 3, "whole number"), ("seed", 4, "whole number"), ("namePrefix", 5, "must begin a valid name")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), BAD_WORKLOADS.values(), ids=BAD_WORKLOADS.keys())
def test_all_mistakes_of_a_workload_are_reported_with_path_and_line(tmp_path, text, expected):
    (tmp_path / "workload.yaml").write_text(f"apiVersion: mooring.dev/v1alpha1\nkind: GeneratedWorkload\n{text}\n")
    with pytest.raises(OperatorMistake) as raised:
        Workload.read(tmp_path / "workload.yaml")
    found = {(each.path.removeprefix("document 1: "), each.line): each.message for each in raised.value.problems}
    assert set(found) == {(path, line) for path, line, _ in expected}
    for path, line, why in expected:
        assert why in found[path, line]


BAD_CLUSTERS: dict[str, tuple[str, list[tuple[str, int, str]]]] = {
    "no number of nodes": ("seed: 1", [("nodes", 1, "is missing: how many nodes")]),
    "counts that do not add up": (
        "nodes: 3\nkinds: [{name: a, count: 5}]",
        [("nodes", 3, "is 3, but the counts of the kinds add up to 5")],
    ),
    "kinds": (
        "nodes: 3\nzones: a\nkinds:\n- count: 1\n  weight: 2\n"
        "- name: B\n  taints: [{key: x}]\n  allocatable: {cpu: x}\n  cpu: 1",
        [
            ("zones", 4, "must be a list"),
            ("kinds[0].name", 6, "is missing"),
            ("kinds[0].weight", 7, "one or the other"),
            ("kinds[1].name", 8, "valid name"),
            ("kinds[1].taints[0].effect", 9, "must be one of"),
            ("kinds[1].allocatable.cpu", 10, "must be a quantity"),
            ("kinds[1].cpu", 11, "is not a field of a kind of node"),
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), BAD_CLUSTERS.values(), ids=BAD_CLUSTERS.keys())
def test_all_mistakes_of_a_cluster_are_reported_with_path_and_line(tmp_path, text, expected):
    (tmp_path / "cluster.yaml").write_text(f"apiVersion: mooring.dev/v1alpha1\nkind: GeneratedCluster\n{text}\n")
    with pytest.raises(OperatorMistake) as raised:
        Cluster.read(tmp_path / "cluster.yaml")
    found = {(each.path.removeprefix("document 1: "), each.line): each.message for each in raised.value.problems}
    assert set(found) == {(path, line) for path, line, _ in expected}
    for path, line, why in expected:
        assert why in found[path, line]


def test_a_workload_is_no_part_of_a_cluster(tmp_path):
    (tmp_path / "both.yaml").write_text("apiVersion: mooring.dev/v1alpha1\nkind: GeneratedWorkload\npods: 1\n")
    with pytest.raises(OperatorMistake, match="belongs into the file of --workload"):
        Cluster.read(tmp_path / "both.yaml")


@pytest.mark.parametrize("kind", ["GeneratedCluster", "GeneratedWorkload", "SimulatedNodes"])
def test_the_version_of_a_document_is_checked(tmp_path, kind):
    (tmp_path / "file.yaml").write_text(f"apiVersion: v1\nkind: {kind}\n")
    with pytest.raises(OperatorMistake, match=f'must be "mooring.dev/v1alpha1" for {kind}, got "v1"'):
        Cluster.read(tmp_path / "file.yaml")


def test_mistakes_in_python_have_their_paths():
    with pytest.raises(OperatorMistake, match=r"(?s)The generated workload has 1 problem.*arrivals\.every"):
        Workload.generate(3, arrivals={"every": "soon"})
    with pytest.raises(OperatorMistake, match=r"(?s)The generated cluster has 1 problem.*kinds\[0\]\.name"):
        Cluster.generate(3, kinds=[{"weight": 1}])
