"""Alibaba's PAI trace of 2020 (cluster-trace-gpu-v2020): CSV files without a header.

A job has tasks (roles), a task has instances, which become pods. `pai_task_table` is required; `pai_job_table` has when
jobs were submitted, `pai_instance_table` how long each instance ran, `pai_group_tag_table` which GPU type a job
requires, `pai_machine_spec` the machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mooring.simulator.importers.csv_tables import CsvTable, TableRow
from mooring.simulator.importers.imported_trace import (
    GPU_MILLI,
    GPU_MODEL,
    ImportedNode,
    ImportedTrace,
    NotImported,
    files_in,
    milli_cpu,
)
from mooring.simulator.trace_rows import TraceRow

JOB = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
INSTANCE = (
    "job_name",
    "task_name",
    "inst_name",
    "worker_name",
    "inst_id",
    "status",
    "start_time",
    "end_time",
    "machine",
)
TAG = ("inst_id", "user", "gpu_type_spec", "group", "workload")
MACHINE = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
FILES = {
    "jobs": "pai_job_table",
    "tasks": "pai_task_table",
    "instances": "pai_instance_table",
    "tags": "pai_group_tag_table",
    "machines": "pai_machine_spec",
}


class _Job(msgspec.Struct, frozen=True, gc=False):
    id: str
    submitted: float | None
    user: str


class _Task(msgspec.Struct, frozen=True, gc=False):
    job: str
    name: str
    instances: int
    started: float | None
    ended: float | None
    requests: dict[str, str]


_NO_JOB = _Job("", None, "")


def import_pai2020(paths: Sequence[str | Path]) -> ImportedTrace:
    """The tables of a folder, or those that are named."""
    files = files_in(paths, FILES, required="tasks")
    nodes = list(CsvTable(files["machines"], MACHINE, header=MACHINE).read(_machine)) if "machines" in files else []
    left_out = NotImported()
    notes = ["GPUs of a node are counted together, in thousandths: which of them a pod shares is not modelled."]
    if "jobs" not in files:
        notes.append("Without pai_job_table pods arrive when their task was launched, not when it was submitted.")
    if "tags" not in files:
        notes.append("Without pai_group_tag_table no pod requires a GPU type.")
    return ImportedTrace(_rows(files, left_out), ("cpu", "memory", GPU_MILLI), nodes, left_out=left_out, notes=notes)


def _rows(files: dict[str, Path], left_out: NotImported) -> Iterator[TraceRow]:
    jobs = dict(CsvTable(files["jobs"], JOB, header=JOB).read(_job)) if "jobs" in files else {}
    required = dict(CsvTable(files["tags"], TAG[:3], header=TAG).read(_tag)) if "tags" in files else {}
    shared: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}

    def task(row: TableRow) -> _Task:
        return _task(row, shared)

    tasks: dict[tuple[str, str], _Task] = {}
    for each in CsvTable(files["tasks"], TASK, header=TASK).read(task):
        if (each.job, each.name) in tasks:
            left_out.add("tasks are listed twice; the last row counts.")
        tasks[each.job, each.name] = each
    times = [job.submitted for job in jobs.values() if job.submitted is not None]
    times += [each.started for each in tasks.values() if each.started is not None]
    making = _Making(jobs, required, min(times, default=0.0), left_out)
    if "instances" in files:
        for instance in CsvTable(files["instances"], INSTANCE[:8], header=INSTANCE).read(_instance):
            yield from making.pods(tasks.get(instance[:2]), 1, *instance[2:])
    for each in tasks.values():
        if not making.has_pods_of(each):
            yield from making.pods(each, each.instances, each.started, each.ended)


class _Making:
    """Pods of tasks, numbered within their task."""

    def __init__(self, jobs: dict[str, _Job], required: dict[str, str], begin: float, left_out: NotImported) -> None:
        self._jobs = jobs
        self._required = required
        self._begin = begin
        self._left_out = left_out
        self._numbers: Counter[tuple[str, str]] = Counter()

    def has_pods_of(self, task: _Task) -> bool:
        return (task.job, task.name) in self._numbers

    def pods(self, task: _Task | None, count: int, started: float | None, ended: float | None) -> Iterator[TraceRow]:
        if task is None:
            self._left_out.add("instances have no task in pai_task_table; they are left out.")
            return
        number, key = self._numbers[task.job, task.name], (task.job, task.name)
        self._numbers[key] += count
        job = self._jobs.get(task.job, _NO_JOB)
        submitted = started if job.submitted is None else job.submitted
        if submitted is None or started is None:
            self._left_out.add("tasks or instances have no time at which they were launched; they are left out.")
            return
        model = self._required.get(job.id, "")
        owner = f"{task.job}-{task.name}".lower()
        for index in range(number, number + count):
            yield TraceRow(
                arrival=max(0.0, submitted - self._begin),
                duration=None if ended is None else max(0.0, ended - started),
                name=f"{owner}-{index}",
                labels={"user": job.user} if job.user else {},
                owner=owner,
                node_selector={GPU_MODEL: (model,)} if model and GPU_MILLI in task.requests else {},
                requests=task.requests,
            )


def _job(row: TableRow) -> tuple[str, _Job]:
    return row.name("job_name"), _Job(row.text("inst_id"), row.number("start_time"), row.text("user"))


def _tag(row: TableRow) -> tuple[str, str]:
    return row.name("inst_id"), row.text("gpu_type_spec")


def _task(row: TableRow, shared: dict[tuple[tuple[str, str], ...], dict[str, str]]) -> _Task:
    """Percents of CPUs and GPUs, gigabytes of 1024 megabytes (29.296875 of them are 30,000)."""
    instances = row.number("inst_num")
    if instances is not None and instances != int(instances):
        row.problem("inst_num", f"must be a whole number, got {row.text('inst_num')!r}")
    cpu, memory, gpu = row.number("plan_cpu"), row.number("plan_mem"), row.number("plan_gpu")
    requests = {}
    if cpu:
        requests["cpu"] = milli_cpu(cpu * 10)
    if memory:
        requests["memory"] = f"{round(memory * 1024)}Mi"
    if gpu:
        requests[GPU_MILLI] = str(round(gpu * 10))
    return _Task(
        row.name("job_name"),
        row.name("task_name"),
        1 if instances is None else int(instances),
        row.number("start_time"),
        row.number("end_time"),
        shared.setdefault(tuple(requests.items()), requests),
    )


def _instance(row: TableRow) -> tuple[str, str, float | None, float | None]:
    return row.name("job_name"), row.name("task_name"), row.number("start_time"), row.number("end_time")


def _machine(row: TableRow) -> ImportedNode:
    gpus, model = row.whole("cap_gpu"), row.text("gpu_type")
    allocatable = {"cpu": f"{row.amount('cap_cpu'):g}", "memory": f"{row.amount('cap_mem'):g}Gi"}
    if gpus:
        allocatable[GPU_MILLI] = str(gpus * 1000)
    is_gpu = gpus and model and model != "CPU"
    return ImportedNode(row.name("machine"), allocatable, {GPU_MODEL: model} if is_gpu else {})
