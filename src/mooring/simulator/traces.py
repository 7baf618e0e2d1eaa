"""Workloads from traces: a CSV file with a row for each pod.

| column | meaning |
| --- | --- |
| `arrival` | when the pod is created, in seconds from the beginning; required |
| `duration` | how long it runs once it is bound, in seconds; empty: for ever |
| `name`, `namespace` | default: `pod-1` and so on in `default` |
| `priority` | a whole number |
| `labels` | `key=value` pairs, separated by `;` |
| `owner` | pods of the same owner have the same controller, as those of a Deployment |
| `scheduler` | the `schedulerName` |
| `cpu`, `memory`, `nvidia.com/gpu`, … | what its container requests, as Kubernetes quantities |

Other columns are left out. All bad rows are reported, each with its line and column.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mooring.base.clock import timestamp
from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.objects.core import Container, Pod, PodSpec, ResourceRequirements
from mooring.objects.meta import ObjectMeta, OwnerReference
from mooring.objects.quantity import BadQuantity, exact
from mooring.objects.requests import is_counted
from mooring.simulator.scenario import Arrival
from mooring.simulator.simulation import START

ARRIVAL = "arrival"
COLUMNS = (ARRIVAL, "duration", "name", "namespace", "priority", "labels", "owner", "scheduler")
MOST_PROBLEMS = 20
"""So many bad rows are listed."""

Row = Mapping[str, str]


def read_trace(lines: Iterable[str], source: str, columns: Mapping[str, str] | None = None) -> list[Arrival]:
    """The pods of a trace. `columns` maps our names of columns to those of the file, where they differ."""
    reader = csv.DictReader(lines)
    present = list(reader.fieldnames or ())
    names = _names(present, columns or {}, source)
    resources = [name for name in names if name not in COLUMNS and is_counted(name)]
    reading = _Reading(source, names, resources)
    arrivals = []
    for number, row in enumerate(reader, start=1):
        if (arrival := reading.arrival(row, reader.line_num, number)) is not None:
            arrivals.append(arrival)
        if len(reading.problems) >= MOST_PROBLEMS:
            break
    reading.refuse()
    if not arrivals:
        raise OperatorMistake(f"The trace {source} has no rows.")
    return arrivals


def _names(present: list[str], columns: Mapping[str, str], source: str) -> dict[str, str]:
    """Our name of each column → its name in the file."""
    problems = [
        Problem(f"--column {ours}={theirs}", f'the file has no column "{theirs}".{did_you_mean(theirs, present)}')
        for ours, theirs in columns.items()
        if theirs not in present
    ]
    taken = set(columns.values())
    names = {name: name for name in present if name not in taken} | dict(columns)
    if ARRIVAL not in names and not problems:
        found = ", ".join(present) or "none"
        problems.append(
            Problem(
                ARRIVAL, f"there is no such column; name the one that has it by --column arrival=NAME (found: {found})"
            )
        )
    if problems:
        raise OperatorMistake.found_in(source, problems)
    return names


class _Reading:
    def __init__(self, source: str, names: Mapping[str, str], resources: list[str]) -> None:
        self._source = source
        self._names = names
        self._resources = resources
        self.problems: list[Problem] = []
        self._seen: set[str] = set()
        self._specs: dict[tuple[Any, ...], PodSpec] = {}
        """Rows that request the same share their spec: so many pods take little memory."""

    def refuse(self) -> None:
        if self.problems:
            raise OperatorMistake.found_in(self._source, self.problems)

    def arrival(self, row: Row, line: int, number: int) -> Arrival | None:
        """None: the row is bad."""
        before = len(self.problems)
        at = self._value(row, line, ARRIVAL, _seconds)
        duration = self._value(row, line, "duration", _seconds)
        priority = self._value(row, line, "priority", int)
        labels = self._value(row, line, "labels", _labels) or {}
        requests = {
            resource: text for resource in self._resources if (text := self._value(row, line, resource, _quantity))
        }
        if at is None and len(self.problems) == before:
            self._problem(line, ARRIVAL, "is empty; every pod needs the second in which it arrives")
        name = self._text(row, "name") or f"pod-{number}"
        namespace = self._text(row, "namespace") or "default"
        uid = f"{namespace}/{name}"
        if uid in self._seen:
            self._problem(line, "name", f'there are two pods "{uid}"; names must differ')
        self._seen.add(uid)
        if len(self.problems) > before or at is None:
            return None
        owner = self._text(row, "owner")
        metadata = ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid,
            labels=labels,
            resource_version="1",
            generation=1,
            creation_timestamp=timestamp(START + at),
            owner_references=[OwnerReference(uid=f"{namespace}/{owner}", controller=True)] if owner else [],
        )
        return Arrival(
            at, Pod(metadata=metadata, spec=self._spec(requests, priority, self._text(row, "scheduler"))), duration
        )

    def _spec(self, requests: dict[str, str], priority: int | None, scheduler: str) -> PodSpec:
        key = (*requests.items(), priority, scheduler)
        if (known := self._specs.get(key)) is None:
            container = Container(name="main", resources=ResourceRequirements(requests=dict(requests)))
            known = PodSpec(containers=[container], priority=priority)
            if scheduler:
                known.scheduler_name = scheduler
            self._specs[key] = known
        return known

    def _text(self, row: Row, column: str) -> str:
        name = self._names.get(column)
        return ((row.get(name) if name is not None else "") or "").strip()

    def _value(self, row: Row, line: int, column: str, read: Callable[[str], Any]) -> Any:
        text = self._text(row, column)
        if not text:
            return None
        try:
            return read(text)
        except (ValueError, BadQuantity) as error:
            self._problem(
                line, column, str(error) if isinstance(error, BadQuantity | _Bad) else f"must be a number, got {text!r}"
            )
            return None

    def _problem(self, line: int, column: str, message: str) -> None:
        theirs = self._names.get(column, column)
        self.problems.append(Problem(f'column "{theirs}"', message, line))


class _Bad(ValueError):
    """A value that is explained."""


def _seconds(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds) or seconds < 0:
        raise _Bad(f"must be a number of seconds, 0 or more, got {text!r}")
    return seconds


def _quantity(text: str) -> str:
    if exact(text) < 0:
        raise _Bad(f"must not be negative, got {text!r}")
    return text if exact(text) else ""


def _labels(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(";") if pair.strip()]
    if any(not equals or not key.strip() for key, equals, _ in pairs):
        raise _Bad(f"must be key=value pairs separated by ;, got {text!r}")
    return {key.strip(): value.strip() for key, _, value in pairs}
