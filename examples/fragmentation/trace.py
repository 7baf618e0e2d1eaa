"""The openb trace: GPU nodes and pods of a production cluster, as CSV (plain, `.gz` or `.xz`) in a folder.

`openb_node_list_gpu_node.csv` lists nodes, `openb_pod_list_NAME.csv` the pods of a workload. Rows become nodes and pods
whose GPU demand is in annotations, as the policies read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.base.errors import OperatorMistake, Problem
from mooring.objects.core import (
    Container,
    Node,
    NodeCondition,
    NodeStatus,
    Pod,
    PodSpec,
    Quantities,
    ResourceRequirements,
)
from mooring.objects.meta import ObjectMeta
from mooring.simulator.importers.openb import OpenbNode, OpenbPod, read_openb_nodes, read_openb_pods
from mooring.simulator.text_files import text_file

from .go_random import GoRandom, read_words, words_of
from .policies.devices import COUNT, GPU, MILLI, MODEL, MODELS, WHOLE
from .policies.fragmentation import TypicalPod

NODES, PODS, WORDS = "openb_node_list_gpu_node.csv", "openb_pod_list_{}.csv", "go_rand.txt"
SUFFIXES = ("", ".gz", ".xz")
MOST_PODS = 1_001
"""On a node."""
TYPICAL_SHARE = 0.95
MOST_PROBLEMS = 20


class Trace(msgspec.Struct, frozen=True):
    """The nodes, and the pods of one workload, by name."""

    nodes: list[OpenbNode]
    pods: list[OpenbPod]

    @property
    def gpu_capacity(self) -> int:
        """In milli."""
        return WHOLE * sum(node.num_gpu for node in self.nodes)


def read_trace(folder: Path | str, workload: str) -> Trace:
    """All that is wrong in a file is reported at once, as an OperatorMistake."""
    nodes = read_openb_nodes(_file(folder, NODES))
    pods = read_openb_pods(path := _file(folder, PODS.format(workload)))
    if not nodes or not pods:
        raise OperatorMistake(f"{folder} has no nodes, or no pods in the workload {workload}.")
    problems = [
        Problem(f"pod {pod.name}", f"wants {pod.gpu_milli} milli of {pod.num_gpu} GPUs; parts are of one GPU")
        for pod in pods
        if pod.num_gpu > 1 and pod.gpu_milli < WHOLE
    ]
    if problems:
        raise OperatorMistake.found_in(str(path), problems[:MOST_PROBLEMS])
    return Trace(sorted(nodes, key=lambda node: node.name), sorted(pods, key=lambda pod: pod.name))


def workloads_in(folder: Path | str) -> list[str]:
    """The names of its workloads."""
    before, after = PODS.split("{}")
    names = {
        path.name.removesuffix(suffix) for suffix in SUFFIXES for path in Path(folder).glob(f"{before}*{after}{suffix}")
    }
    return sorted(name.removeprefix(before).removesuffix(after) for name in names)


def generator_of(folder: Path | str, seed: int) -> GoRandom:
    """Go's random numbers by this seed where the folder has its first words, otherwise numbers of our own."""
    words: Mapping[int, list[int]] = {}
    if (path := found_file(folder, WORDS)) is not None:
        try:
            with text_file(path) as lines:
                words = read_words(lines)
        except ValueError as error:
            raise OperatorMistake(f"{path} cannot be read: {error}.") from error
    return GoRandom(words[seed] if seed in words else words_of(seed))


def found_file(folder: Path | str, name: str) -> Path | None:
    """The file of this name, compressed or not."""
    paths = [Path(folder) / f"{name}{suffix}" for suffix in SUFFIXES]
    return next((path for path in paths if path.exists()), None)


def _file(folder: Path | str, name: str) -> Path:
    path = found_file(folder, name)
    if path is None:
        known = ", ".join(workloads_in(folder)) or "none"
        raise OperatorMistake(f"{folder} has no file {name}, plain, .gz or .xz. Workloads found there: {known}.")
    return path


# From rows to objects


def node_objects(nodes: Sequence[OpenbNode]) -> list[Node]:
    """As the API shows them."""
    return [_node_object(node) for node in nodes]


def _node_object(node: OpenbNode) -> Node:
    offered = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": str(MOST_PODS),
        **({GPU: str(node.num_gpu)} if node.num_gpu else {}),
    }
    return Node(
        metadata=ObjectMeta(
            name=node.name, uid=node.name, resource_version="1", labels={MODEL: node.model} if node.model else {}
        ),
        status=NodeStatus(
            capacity=offered, allocatable=offered, conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )


class PodObjects:
    """Makes pods of rows. Those that want the same share what is equal: so many take little memory."""

    def __init__(self) -> None:
        self._shared: dict[tuple[Any, ...], tuple[PodSpec, dict[str, str]]] = {}

    def pod(self, row: OpenbPod, name: str, created: str | None = None) -> Pod:
        key = (row.cpu_milli, row.memory_mib, row.num_gpu, row.gpu_milli, models_of(row))
        if (shared := self._shared.get(key)) is None:
            self._shared[key] = shared = (_spec(row), _annotations(row))
        spec, annotations = shared
        metadata = ObjectMeta(
            name=name,
            namespace="default",
            uid=name,
            annotations=annotations,
            resource_version="1",
            generation=1,
            creation_timestamp=created,
        )
        return Pod(metadata=metadata, spec=spec)


def _spec(row: OpenbPod) -> PodSpec:
    requests: Quantities = {"cpu": f"{row.cpu_milli}m", "memory": f"{row.memory_mib}Mi"}
    return PodSpec(containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),), priority=0)


def _annotations(row: OpenbPod) -> dict[str, str]:
    if not row.num_gpu:
        return {}
    return {COUNT: str(row.num_gpu), MILLI: str(row.gpu_milli)} | ({MODELS: models_of(row)} if models_of(row) else {})


def typical_pods(pods: Sequence[OpenbPod]) -> list[TypicalPod]:
    """The most frequent classes of pods, until they are 95 % of all; of equally frequent ones the largest first."""
    counts = Counter((pod.cpu_milli, pod.gpu_milli, pod.num_gpu, models_of(pod)) for pod in pods)
    classes, covered = [], 0
    for pods_of_class, kind in sorted(((number, kind) for kind, number in counts.items()), reverse=True):
        if covered >= TYPICAL_SHARE * len(pods):
            break
        covered += pods_of_class
        classes.append((pods_of_class, kind))
    # Three divisions, as in the paper's simulator: the last place of a weight decides ties.
    share = covered / len(pods)
    return [
        TypicalPod(
            cpu_milli=cpu, gpu_milli=milli, gpu_count=count, models=models, weight=pods_of_class / len(pods) / share
        )
        for pods_of_class, (cpu, milli, count, models) in classes
    ]


def models_of(pod: OpenbPod) -> str:
    """The allowed models; pods without GPU have none to choose."""
    return pod.gpu_spec if pod.num_gpu else ""
