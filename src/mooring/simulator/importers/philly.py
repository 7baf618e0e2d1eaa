"""Microsoft's Philly trace (philly-traces): `cluster_job_log`, JSON, and `cluster_machine_list`, CSV.

A job becomes a pod on each server of its last attempt, with as many GPUs as it had there. CPU and memory are not in the
trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from mooring.base.errors import OperatorMistake, Problem
from mooring.simulator.importers.csv_tables import CsvTable, TableRow
from mooring.simulator.importers.imported_trace import GPU, ImportedNode, ImportedTrace, NotImported, files_in
from mooring.simulator.text_files import binary_file, readable
from mooring.simulator.trace_rows import TraceRow
from mooring.simulator.traces import MOST_PROBLEMS

FILES = {"jobs": "cluster_job_log", "machines": "cluster_machine_list"}
MACHINE = ("machineId", "number of GPUs", "single GPU mem")
_TIME = "%Y-%m-%d %H:%M:%S"


class _Server(msgspec.Struct):
    gpus: list[str] = []


class _Attempt(msgspec.Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Server] = []


class _PhillyJob(msgspec.Struct):
    jobid: str
    submitted_time: str | None = None
    vc: str = ""
    user: str = ""
    attempts: list[_Attempt] = []


class _BadTime(ValueError):
    """A time that cannot be read: its field and text."""


def import_philly(paths: Sequence[str | Path]) -> ImportedTrace:
    """The job log, and the list of machines if there is one."""
    files = files_in(paths, FILES, required="jobs")
    nodes = list(CsvTable(files["machines"], MACHINE).read(_machine)) if "machines" in files else []
    left_out = NotImported()
    notes = ["The trace has neither CPU nor memory: pods request GPUs alone."]
    return ImportedTrace(_rows(files["jobs"], left_out), (GPU,), nodes, left_out=left_out, notes=notes)


def _rows(path: Path, left_out: NotImported) -> Iterator[TraceRow]:
    jobs = _jobs(path)
    submitted = [_time(job.submitted_time, "submitted_time") for job in jobs]
    begin = min((each for each in submitted if each is not None), default=0.0)
    for job, at in zip(jobs, submitted, strict=True):
        if at is None:
            left_out.add("jobs have no time of submission; they are left out.")
            continue
        servers = next((attempt.detail for attempt in reversed(job.attempts) if attempt.detail), [])
        if not servers:
            left_out.add("jobs were never started: how many GPUs they wanted is not known; they are left out.")
            continue
        owner = job.jobid.lower().replace("_", "-")
        for index, server in enumerate(servers):
            yield TraceRow(
                arrival=at - begin,
                duration=_duration(job),
                name=f"{owner}-{index}",
                labels={key: value for key, value in (("vc", job.vc), ("user", job.user)) if value},
                owner=owner,
                requests={GPU: str(len(server.gpus))} if server.gpus else {},
            )


def _duration(job: _PhillyJob) -> float | None:
    """The time of all attempts. None: it was still running when the trace ended."""
    if _time(job.attempts[-1].end_time, "end_time") is None:
        return None
    total = 0.0
    for attempt in job.attempts:
        start, end = _time(attempt.start_time, "start_time"), _time(attempt.end_time, "end_time")
        total += max(0.0, end - start) if start is not None and end is not None else 0.0
    return total


def _jobs(path: Path) -> list[_PhillyJob]:
    """All jobs, checked: bad ones are reported by their number in the file."""
    with readable(path, "The trace"), binary_file(path) as file:
        try:
            parts = msgspec.json.decode(file.read(), type=list[msgspec.Raw])
        except (msgspec.DecodeError, RecursionError) as error:
            raise OperatorMistake(f"The trace {path} is no JSON array of jobs: {error}.") from error
    decoder, jobs, problems = msgspec.json.Decoder(_PhillyJob), [], []
    for number, part in enumerate(parts, start=1):
        try:
            job = decoder.decode(part)
            _check_times(job)
            jobs.append(job)
        except msgspec.DecodeError as error:
            message, _, field = str(error).partition(" - at `$")
            where = f'job {number}, field "{field.strip("`.")}"' if field else f"job {number}"
            problems.append(Problem(where, message))
        except _BadTime as error:
            field, text = error.args
            problems.append(
                Problem(f'job {number}, field "{field}"', f"must be a time as in 2017-10-07 01:11:39, got {text!r}")
            )
        if len(problems) >= MOST_PROBLEMS:
            break
    if problems:
        raise OperatorMistake.found_in(str(path), problems)
    return jobs


def _check_times(job: _PhillyJob) -> None:
    _time(job.submitted_time, "submitted_time")
    for index, attempt in enumerate(job.attempts):
        _time(attempt.start_time, f"attempts[{index}].start_time")
        _time(attempt.end_time, f"attempts[{index}].end_time")


def _time(text: str | None, field: str) -> float | None:
    """In seconds. The trace has local times; an hour of summer time is not corrected."""
    if text in (None, "", "None"):
        return None
    try:
        return (datetime.strptime(str(text), _TIME) - datetime(1970, 1, 1)).total_seconds()
    except ValueError:
        raise _BadTime(field, text) from None


def _machine(row: TableRow) -> ImportedNode:
    memory = row.text("single GPU mem")
    labels = {"gpu-memory": memory} if memory else {}
    return ImportedNode(row.name("machineId"), {GPU: str(row.whole("number of GPUs"))}, labels)
