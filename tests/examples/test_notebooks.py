"""The notebooks run from the first cell to the last, by a kernel of this Python."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from sklearn.tree import DecisionTreeRegressor
from tests.examples.conftest import EXAMPLES

from mooring.testing import a_cycle, a_node, a_plugin, a_pod

NOTEBOOKS = EXAMPLES / "notebooks"
SMALL = "PODS, SEEDS, TRAINING_SEEDS, GENERATIONS = 50, range(2), range(100, 102), 1"


def executed(parameters: str | None = None) -> Any:
    """The notebook with outputs; `parameters` replaces the cell that sets them. A cell that raises fails the test."""
    notebook = nbformat.read(NOTEBOOKS / "tuning.ipynb", as_version=4)
    if parameters is not None:
        [cell] = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
        cell.source = parameters
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    return notebook


def printed(notebook: Any) -> str:
    return "".join(
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "stream" and output.name == "stdout"
    )


def charts(notebook: Any) -> int:
    return sum(
        "image/svg+xml" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())
    )


def test_the_study_runs_to_the_simulation_with_the_learnt_score():
    notebook = executed(SMALL)
    text = printed(notebook)
    assert "on the training workloads, the best of" in text
    assert "of the variance" in text
    assert "default.yaml  learnt.yaml" in text
    assert charts(notebook) == 4


def test_it_is_committed_without_outputs():
    notebook = json.loads((NOTEBOOKS / "tuning.ipynb").read_text())
    assert [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code" and cell["outputs"]] == []


@pytest.mark.real
def test_the_study_finds_what_it_reports():
    """As a reader runs it, in a minute or two: every remedy shortens the waits of large pods."""
    notebook = executed()
    [table] = [
        output.data["text/plain"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "tuned" in output.get("data", {}).get("text/plain", "") and "shape: (4, 4)" in output.data["text/plain"]
    ]
    waited = dict(re.findall(r"│ ([a-z ]+?) +┆ ([\d.]+)", table))
    assert set(waited) == {"default", "by hand", "tuned", "learnt"}
    assert all(float(waited[each]) < 0.5 * float(waited["default"]) for each in ("by hand", "tuned", "learnt"))


@pytest.fixture
def learnt_score(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("learnt_score", NOTEBOOKS / "learnt_score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "learnt_score", module)  # where its annotations are looked up
    spec.loader.exec_module(module)
    return module


def as_lists(model: DecisionTreeRegressor) -> dict[str, list[float]]:
    tree = model.tree_
    return {
        "feature": tree.feature.tolist(),
        "threshold": tree.threshold.tolist(),
        "left": tree.children_left.tolist(),
        "right": tree.children_right.tolist(),
        "value": tree.value[:, 0, 0].tolist(),
    }


def test_the_plugin_predicts_what_scikit_learn_predicts(learnt_score: ModuleType):
    # Eighths are exact as 32-bit floating point, which is how scikit-learn compares.
    rng = np.random.default_rng(0)
    features = rng.integers(0, 9, size=(200, 3)) / 8
    model = DecisionTreeRegressor(max_depth=5).fit(features, features @ [3.0, -2.0, 1.0])
    tree = as_lists(model)
    assert [learnt_score.predicted(tree, tuple(row)) for row in features] == model.predict(features).tolist()


def test_the_plugin_prefers_nodes_that_are_occupied_anyway(learnt_score: ModuleType, tmp_path: Path):
    # One split: a node with less than 90 % of its CPU free is occupied for another 600 seconds.
    tree = {"feature": [0, -2, -2], "threshold": [0.9, -2, -2], "left": [1, -1, -1], "right": [2, -1, -1]}
    (tmp_path / "model.json").write_text(json.dumps({**tree, "value": [0, 600.0, 0.0]}))
    plugin = a_plugin(learnt_score.LearntScore, model=str(tmp_path / "model.json"), seconds_per_point=10.0)
    pod = a_pod(cpu="1", memory="1Gi")
    empty = a_node("empty", cpu="8", memory="32Gi")
    occupied = a_node("occupied", cpu="8", memory="32Gi", running=[a_pod("other", cpu="1", memory="1Gi")])
    assert [plugin.score(pod, node, a_cycle(pod)) for node in (empty, occupied)] == [40, 100]
