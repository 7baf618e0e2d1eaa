"""A class name means one thing: public classes of two modules do not share it without a reason."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import mooring

SOURCES = Path(mooring.__file__).parent

SHARED = {
    "Candidates": "of preemption, and of a claim; each inside its plugin",
    "Cluster": "one that decides in tests of plugins, and one that is simulated",
    "Counter": "a shared counter of resource.k8s.io, and a type of metric",
    "Histogram": "a type of metric: served, and read by the benchmark",
    "LowerPriorityPods": "a protocol of the framework and its implementation",
    "NodeAffinity": "a field of pods, and kube-scheduler's plugin",
    "PodGroupMembers": "a protocol of the framework and its implementation",
    "ReplicaSet": "Kubernetes' kind: as the scheduler reads it, and as its controller does",
    "Run": "of plugins at a point, and of benchmarks",
    "Search": "the dry runs of preemption, and that for volumes; each inside its plugin",
    "StatefulSet": "Kubernetes' kind: as the scheduler reads it, and as its controller does",
    "Summary": "of a shadow, and of a benchmark",
    "Usage": "of a resource, and of a process under measurement",
    "Workload": "of our benchmark, of upstream's files, and Kubernetes' kind",
}
"""May become fewer."""


@cache
def modules_by_class() -> dict[str, set[Path]]:
    found = defaultdict(set)
    for module in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(module.relative_to(SOURCES))
    return found


def test_a_class_name_means_one_thing():
    shared = {name: sorted(map(str, modules)) for name, modules in modules_by_class().items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in SHARED} == {}


def test_the_list_has_no_name_that_is_no_longer_shared():
    modules = modules_by_class()
    assert [name for name in SHARED if len(modules[name]) < 2] == []
