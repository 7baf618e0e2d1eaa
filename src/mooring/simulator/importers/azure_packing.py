"""Azure's trace for packing of 2020 (AzureTracesForPacking2020): a sqlite database with the tables `vm` and `vmType`.

What a VM needs is a share of a machine, and differs between kinds of machines. Pods get what they need on one kind:
that on which most of them can run. VMs that cannot are left out. How many machines there were is not in the trace.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mooring.base.errors import OperatorMistake, Problem
from mooring.simulator.importers.imported_trace import ImportedNode, ImportedTrace, NotImported
from mooring.simulator.trace_rows import TraceRow
from mooring.simulator.traces import MOST_PROBLEMS

TABLES = {
    "vm": ("vmId", "tenantId", "vmTypeId", "priority", "starttime", "endtime"),
    "vmType": ("vmTypeId", "machineId", "core", "memory", "hdd", "ssd", "nic"),
}
DAY = 86_400.0
PRIORITIES = {0: 100, 1: 0}
"""High and low, as a pod's."""
_SHARES = {
    "core": "cpu",
    "memory": "memory",
    "ssd": "ephemeral-storage",
    "hdd": "mooring.dev/hdd",
    "nic": "mooring.dev/nic",
}
_WHOLE = {"core": 1_000_000, "memory": 2**20, "ssd": 2**20, "hdd": 1_000_000, "nic": 1_000_000}
"""What a machine has, in the units of `_UNITS`: 1000 CPUs, a tebibyte each, millionths."""
_UNITS = {"core": "m", "memory": "Mi", "ssd": "Mi", "hdd": "", "nic": ""}


def import_azure_packing(paths: Sequence[str | Path]) -> ImportedTrace:
    """The VMs of the database. All that is wrong in a row is named by its table, row and column."""
    if len(paths) != 1:
        raise OperatorMistake("The trace is one sqlite database; name that file alone.")
    path = Path(paths[0])
    with closing(_opened(path)) as database:
        machine, types = _types_of_one_machine(database, path)
    left_out = NotImported()
    whole = {_SHARES[column]: f"{_WHOLE[column]}{_UNITS[column]}" for column in _SHARES}
    notes = [
        f"Requests are those on machines of the kind {machine}, as shares of 1000 CPUs, of a tebibyte of memory and "
        "storage, and of a million units of mooring.dev/hdd and mooring.dev/nic.",
        "How many machines there were is not in the trace: the cluster file has one; write count instead of names.",
    ]
    node = ImportedNode(f"machine-{machine}-1".lower(), whole)
    return ImportedTrace(_rows(path, types, left_out), tuple(_SHARES.values()), [node], left_out=left_out, notes=notes)


def _opened(path: Path) -> sqlite3.Connection:
    """The database, to be read only; without one of the tables or columns it is refused."""
    try:
        with path.open("rb"):  # for a clear message where that fails
            database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            _check_tables(database, path)
        except BaseException:
            database.close()
            raise
    except (OSError, sqlite3.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OperatorMistake(f"The trace {path} cannot be read: {why}.") from error
    return database


def _check_tables(database: sqlite3.Connection, path: Path) -> None:
    problems = []
    for table, columns in TABLES.items():
        found = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        missing = f"is missing (found: {', '.join(found) or 'no such table'})"
        problems += [Problem(f'table "{table}", column "{name}"', missing) for name in columns if name not in found]
    if problems:
        raise OperatorMistake.found_in(str(path), problems)


def _types_of_one_machine(database: sqlite3.Connection, path: Path) -> tuple[str, dict[Any, dict[str, str]]]:
    """The kind of machine on which most VMs can run, and what each type of VM requests there."""
    most = database.execute(
        "SELECT machineId FROM vmType JOIN (SELECT vmTypeId AS wanted, COUNT(*) AS vms FROM vm GROUP BY vmTypeId) "
        "ON wanted = vmTypeId GROUP BY machineId ORDER BY SUM(vms) DESC, machineId"
    ).fetchone()
    if most is None:
        raise OperatorMistake(f"The trace {path} has no VMs.")
    columns = list(_SHARES)
    types, problems = {}, []
    query = f"SELECT rowid, vmTypeId, {', '.join(columns)} FROM vmType WHERE machineId = ? ORDER BY rowid"
    for number, name, *shares in database.execute(query, most):
        requests = {}
        for column, share in zip(columns, shares, strict=True):
            if share is not None and not (_is_number(share) and 0 <= share <= 1):
                message = f"must be a share of a machine from 0 to 1, got {share!r}"
                problems.append(Problem(f'table "vmType", row {number}, column "{column}"', message))
            # Rounded down: what fills a machine exactly must still fit.
            elif share and (amount := math.floor(share * _WHOLE[column] + 1e-6)):
                requests[_SHARES[column]] = f"{amount}{_UNITS[column]}"
        types[name] = requests
    if problems:
        raise OperatorMistake.found_in(str(path), problems[:MOST_PROBLEMS])
    return str(most[0]), types


def _rows(path: Path, types: dict[Any, dict[str, str]], left_out: NotImported) -> Iterator[TraceRow]:
    problems: list[Problem] = []
    for number, vm, tenant, type_, priority, start, end in _vms(path):
        wrong = list(_wrong(priority, start, end))
        problems += [Problem(f'table "vm", row {number}, column "{column}"', message) for column, message in wrong]
        if len(problems) >= MOST_PROBLEMS:
            break
        if wrong:
            continue
        if type_ not in types:
            left_out.add("VMs cannot run on that kind of machine; they are left out.")
            continue
        # A VM with a negative start was there when the trace began.
        begin = max(0.0, start)
        yield TraceRow(
            arrival=round(begin * DAY, 3),
            duration=None if end is None else round(max(0.0, end - begin) * DAY, 3),
            name=f"vm-{vm}",
            priority=PRIORITIES[priority],
            owner=f"tenant-{tenant}",
            requests=types[type_],
        )
    if problems:
        raise OperatorMistake.found_in(str(path), problems)


def _vms(path: Path) -> Iterator[tuple[Any, ...]]:
    with closing(_opened(path)) as database:
        yield from database.execute(f"SELECT rowid, {', '.join(TABLES['vm'])} FROM vm ORDER BY starttime, vmId")


def _wrong(priority: Any, start: Any, end: Any) -> Iterator[tuple[str, str]]:
    if priority not in PRIORITIES:
        yield "priority", f"must be 0 (high) or 1 (low), got {priority!r}"
    if not _is_number(start):
        yield "starttime", f"must be a number of days, got {start!r}"
    if end is not None and not _is_number(end):
        yield "endtime", f"must be a number of days or NULL, got {end!r}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
