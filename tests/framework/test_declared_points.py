"""What type checkers and editors know of the extension points, and that `Plugin` itself has none of them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import jedi  # type: ignore[import-untyped]
import pytest

from mooring.framework import Plugin
from mooring.framework.points import METHODS, Point, points_of

ROOT = Path(__file__).parents[2]

HEAD = """\
from collections.abc import Iterator
from mooring.framework import *
from mooring.framework import Plugin

class Mine(Plugin):
"""

GOOD = {
    "a filter": "def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None: return None",
    "a filter that never rejects": "def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...",
    "other names for the parameters": "def filter(self, _pod: Pod, there: NodeView, _: Cycle) -> None: ...",
    "a parameter of its own": "def score(self, pod: Pod, node: NodeView, cycle: Cycle, base: int = 0) -> int: return 1",
    "a generator": "def filter_nodes(self, pod: Pod, rows: NodeRows, c: Cycle) -> Iterator[Rejections]: yield from ()",
    "a state of any type": "def pre_filter(self, pod: Pod, cycle: Cycle) -> dict[str, int]: return {}",
    "a state or Skip": "def pre_score(self, pod: Pod, feasible: NodeRows, cycle: Cycle) -> list[int] | Skip: return []",
    "a plan": "def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan: return Plan()",
    "one of the verdicts": "def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow: return Allow()",
    "bind": "async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound: return Bound()",
    "unreserve that waits": "async def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...",
    "unreserve that does not": "def unreserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...",
    "a key of any type": "def sort_key(self, queued: QueuedPod) -> tuple[int, float]: return (0, queued.timestamp)",
    "a helper": "def wanted(self, pod: Pod) -> int: return 0",
}
FILTER = "def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: {}"
WRONG_RETURN, WRONG_SIGNATURE = 'Return type "{}" of "{}" incompatible', 'Signature of "{}" incompatible with supertype'
BAD = {
    "a filter that returns a bool": (
        "def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool: return True",
        WRONG_RETURN.format("bool", "filter"),
    ),
    "a score that is no whole number": (
        "def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> float: return 0.5",
        WRONG_RETURN.format("float", "score"),
    ),
    "a filter without the cycle": (
        "def filter(self, pod: Pod, node: NodeView) -> None: ...",
        WRONG_SIGNATURE.format("filter"),
    ),
    "a pre_filter with a node": (
        "def pre_filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...",
        WRONG_SIGNATURE.format("pre_filter"),
    ),
    "a node where there are rows": (
        "def score_nodes(self, pod: Pod, nodes: NodeView, cycle: Cycle) -> IntArray: ...",
        'Argument 2 of "score_nodes" is incompatible',
    ),
    "a score that waits": (
        "async def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int: return 0",
        WRONG_RETURN.format("Coroutine[Any, Any, int]", "score"),
    ),
    "a bind that does not wait": (
        "def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound: return Bound()",
        WRONG_RETURN.format("Bound", "bind"),
    ),
    "a permit that returns a number of seconds": (
        "def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> float: return 1.0",
        WRONG_RETURN.format("float", "permit"),
    ),
    "a pre_bind that returns a bool": (
        "async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> bool: return True",
        WRONG_RETURN.format("Coroutine[Any, Any, bool]", "pre_bind"),
    ),
    "a label that is set": (
        FILTER.format('pod.labels["a"] = "b"'),
        'Unsupported target for indexed assignment ("Mapping[',
    ),
    "a default label": (
        FILTER.format('pod.labels.setdefault("a", "b")'),
        '"Mapping[str, str]" has no attribute "setdefault"',
    ),
    "a label of the metadata": (
        FILTER.format('pod.metadata.labels.pop("a")'),
        '"Mapping[str, str]" has no attribute "pop"',
    ),
    "a container more": (FILTER.format("pod.spec.containers.clear()"), 'has no attribute "clear"'),
    "a field that is set": (
        FILTER.format('pod.spec.node_name = "a"'),
        'Property "node_name" defined in "PodSpec" is read-only',
    ),
    "an object that is replaced": (
        FILTER.format("pod.spec = pod.spec"),
        'Property "spec" defined in "Pod" is read-only',
    ),
    "a label of the node": (
        FILTER.format('node.labels["a"] = "b"'),
        'Unsupported target for indexed assignment ("Mapping[',
    ),
    "an attribute of the node": (
        FILTER.format("node.is_unschedulable = True"),
        'Property "is_unschedulable" defined in "NodeView" is read-only',
    ),
    "an attribute of the cycle": (
        FILTER.format("cycle.attempt = 1"),
        'Property "attempt" defined in "Cycle" is read-only',
    ),
    "a start that does not wait": ("def start(self) -> None: ...", WRONG_RETURN.format("None", "start")),
}


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy --strict reports of each plugin of the tables."""
    folder = tmp_path_factory.mktemp("plugins")
    files = {}
    for number, (case, text) in enumerate([*GOOD.items(), *((case, text) for case, (text, _) in BAD.items())]):
        files[case] = folder / f"plugin_{number}.py"
        files[case].write_text(f"{HEAD}    {text}\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", "--no-pretty"]
    checked = subprocess.run(
        [*command, *map(str, files.values())], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = checked.stdout.splitlines()
    assert "checked" in lines[-1], checked.stdout + checked.stderr
    return {case: "\n".join(line for line in lines if f"{file.name}:" in line) for case, file in files.items()}


@pytest.mark.parametrize("case", GOOD)
def test_mypy_accepts_a_plugin_that_keeps_the_contract(findings, case):
    assert findings[case] == ""


@pytest.mark.parametrize(("case", "error"), [(case, error) for case, (_, error) in BAD.items()], ids=BAD)
def test_mypy_rejects_a_plugin_that_does_not(findings, case, error):
    assert error in findings[case]


def offered(beginning: str) -> dict[str, jedi.api.classes.Completion]:
    """What an editor offers after `def`, as names and documentation."""
    lines = ["from mooring.framework import Plugin", "class Mine(Plugin):", f"    def {beginning}"]
    script = jedi.Script("\n".join(lines), project=jedi.Project(ROOT, added_sys_path=[str(ROOT / "src")]))
    return {completion.name: completion for completion in script.complete(len(lines), len(lines[-1]))}


def test_editors_offer_every_method_of_the_contract():
    names = {*METHODS, "events"}
    assert names <= {name for letter in {name[0] for name in names} for name in offered(letter)}


def test_editors_show_the_documentation_of_a_point():
    assert "Reject nodes that cannot run the pod." in offered("filt")["filter"].docstring()


def test_every_method_of_the_contract_is_documented():
    assert [name for name, method in METHODS.items() if not inspect.getdoc(method)] == []


def test_the_methods_of_every_point_are_declared():
    assert [name for point in Point for name in point.methods if name not in METHODS] == []


def test_the_base_class_has_no_point_itself():
    assert points_of(Plugin) == ()
    assert [name for name in METHODS if hasattr(Plugin, name)] == []
