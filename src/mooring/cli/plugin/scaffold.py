"""What `mooring plugin new` writes: a plugin, its test and a configuration that work as they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mooring.base.errors import OperatorMistake
from mooring.base.files import create_new, in_made_folder

PLUGIN = '''"""{name}: keep part of every node unrequested.

A node is refused when the pod would leave less than `keepPercent` of its CPU free. Among the others, the node with
the higher number in the label `{label}` is preferred. Change both rules to your own.
"""

from typing import Annotated

from mooring.framework import Action, Args, Cycle, Hint, Meta, Node, NodeView, Plugin, Pod, Reads, Rejection, ToMax

TOO_LITTLE = "node(s) would have too little headroom"


class {name}Args(Args):
    keep_percent: Annotated[int, Meta(ge=0, le=100, description="Share of the CPU to leave free.")] = 10


class {name}(Plugin):
    """Keep part of every node unrequested."""

    reads = Reads.REQUESTED
    normalizer = ToMax()

    def __init__(self, args: {name}Args) -> None:
        self._keep = args.keep_percent

    def events(self) -> list[Hint]:
        return [Hint(Node, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE), Hint(Pod, Action.DELETE)]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        left = node.free("cpu") - pod.request("cpu")
        if left * 100 < node.allocatable("cpu") * self._keep:
            return Rejection(TOO_LITTLE)
        return None

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        number = node.labels.get("{label}", "0")
        return int(number) if number.isdecimal() else 0
'''

TEST = """import pytest
from mooring.framework import NodeView, Pod
from mooring.testing import a_cluster, a_cycle, a_node, a_pod

from .{module} import TOO_LITTLE, {name}, {name}Args

CASES = {{
    "a pod that leaves exactly the headroom fits": (a_pod(cpu="900m"), a_node(cpu="1"), None),
    "a pod that eats into the headroom is refused": (a_pod(cpu="901m"), a_node(cpu="1"), TOO_LITTLE),
    "pods already on the node count": (
        a_pod(cpu="500m"),
        a_node(cpu="1", running=[a_pod("other", cpu="500m")]),
        TOO_LITTLE,
    ),
}}


@pytest.mark.parametrize(("pod", "node", "reason"), CASES.values(), ids=CASES.keys())
def test_ten_percent_headroom(pod: Pod, node: NodeView, reason: str | None) -> None:
    rejection = {name}({name}Args()).filter(pod, node, a_cycle(pod))
    assert (rejection.reasons[0] if rejection else None) == reason


def test_the_node_with_the_higher_number_wins() -> None:
    nodes = [a_node("small", labels={{"{label}": "1"}}), a_node("big", labels={{"{label}": "5"}})]
    cluster = a_cluster(*nodes, plugins=[{name}({name}Args())])
    assert cluster.schedule(a_pod(cpu="100m")).node == "big"
"""

CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: {profile}
  plugins:
    multiPoint:
      enabled:
      - name: {name}
        weight: 5
  pluginConfig:
  - name: {name}
    args:
      keepPercent: 10
"""


def write_scaffold(name: str, into: str | None) -> str:
    """Write the files and return what to do with them. Existing files are never overwritten."""
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise OperatorMistake(f'"{name}" cannot name a plugin: use a Python class name such as "Headroom".')
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    dashed = module.replace("_", "-")
    folder = Path(into) if into is not None else Path(module)
    texts = {
        folder / f"{module}.py": PLUGIN,
        folder / f"test_{module}.py": TEST,
        folder / "scheduler.yaml": CONFIG,
        folder / "__init__.py": "",  # tests import the plugin as a part of its folder, also under plain pytest
    }
    for file in texts:
        if os.path.lexists(file):
            raise OperatorMistake(f"{file} exists already; choose another name or folder (--into).")
    made: list[Path] = []
    try:
        with in_made_folder(folder):
            try:
                for file, text in texts.items():
                    create_new(file, text.format(name=name, module=module, label=dashed, profile=dashed))
                    made.append(file)
            except OSError:
                for file in made:
                    file.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise OperatorMistake(f"{folder} cannot be written: {error.strerror}.") from error
    written = "\n".join(f"  {file}" for file in texts)
    return (
        f"Wrote\n{written}\n\nNext:\n  mooring plugin test {folder}/\n"
        f"  mooring up --plugins {folder}/{module}.py --config {folder}/scheduler.yaml"
        f"    # for pods with schedulerName: {dashed}"
    )
