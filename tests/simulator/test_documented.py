"""The examples in Python of the pages on simulations hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mooring.simulator import Cluster, Workload

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["simulate.md", "simulation-reports.md", "sweeps.md", "traces.md", "what-if.md"])
def test_the_examples_in_python_hold(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write a file
    examples = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {})


def test_the_documents_of_traces_are_read(tmp_path):
    workload, cluster = re.findall(r"```yaml\n(.*?)```", (DOCS / "traces.md").read_text(), re.DOTALL)
    (tmp_path / "workload.yaml").write_text(workload)
    (tmp_path / "cluster.yaml").write_text(cluster)
    assert len(Workload.read(tmp_path / "workload.yaml")) == 10_000
    assert len(Cluster.read(tmp_path / "cluster.yaml").nodes) == 200
