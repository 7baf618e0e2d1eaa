"""Workload files of the tests' own, in upstream's format."""

from __future__ import annotations

from pathlib import Path

from mooring.bench.scheduler_perf.workload_files import FILE_NAME, Case, read_cases

POD = """
apiVersion: v1
kind: Pod
metadata:
  generateName: pod-
  labels: {app: web}
spec:
  containers: [{name: main, image: "registry.example/app:1"}]
"""


def a_case(tmp_path: Path, operations: str, *, workload: str = "", test_case: str = "") -> Case:
    """The one workload of a file with these operations. Lines are YAML, without the indentation."""
    folder = tmp_path / "scheduler_perf" / "misc"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pod.yaml").write_text(POD, encoding="utf-8")
    lines = ["- name: Some", *_indented(test_case, 2), "  workloadTemplate:", *_indented(operations, 2)]
    lines += ["  workloads:", "  - name: small", *_indented(workload, 4)]
    (folder / FILE_NAME).write_text("\n".join(lines), encoding="utf-8")
    (case,) = read_cases([folder / FILE_NAME])
    return case


def _indented(text: str, spaces: int) -> list[str]:
    return [" " * spaces + line for line in text.strip("\n").splitlines()]
