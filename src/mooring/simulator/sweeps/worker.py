"""What a worker does with a run, in whichever process: load its values, call it, and check the rows that it returns.

Values are sent once for each worker and kept here under their digests. A worker that lacks one returns `Lacking`, and
the run is submitted again with all of them: which worker receives a run is known to its executor only.
"""

from __future__ import annotations

import pickle
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mooring.base.errors import OperatorMistake

Row: TypeAlias = dict[str, Any]

MOST_SWEEPS = 2
"""Of so many sweeps a worker keeps values; those of earlier ones are dropped."""
ERROR = "error"
"""The column of failed runs."""


@dataclass(frozen=True)
class RunRequest:
    """A run for a worker: small, but for the values that it brings."""

    sweep: str
    number: int
    """Of the attempt: executors that look up results by arguments must not take another one for it."""
    function: str
    """The digest of what is called."""
    plain: Mapping[str, Any]
    shared: Mapping[str, str]
    """Parameters whose values are shipped, by their digests."""
    names: frozenset[str]
    """The labels' names, which rows may not have."""
    sent: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Lacking:
    """The worker has not received all values."""


@dataclass(frozen=True)
class RunFailure:
    """The run raised, or returned something else than rows."""

    error: str
    traceback: str = ""


RunReply: TypeAlias = list[Row] | RunFailure | Lacking


class ColumnKinds:
    """Which kind of value each column has: a file has one kind in a column."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}

    def add(self, rows: Sequence[Row]) -> str | None:
        """What is wrong with these rows beside earlier ones; None: nothing."""
        found = dict(self._kinds)
        for row in rows:
            for name, value in row.items():
                if (kind := _kind_of(value)) is None:
                    continue
                if found.setdefault(name, kind) != kind:
                    return f'the column "{name}" is {kind}, and {found[name]} in other rows'
        self._kinds = found
        return None


def _kind_of(value: Any) -> str | None:
    """None: any."""
    if value is None:
        return None
    if isinstance(value, list):
        kinds = {kind for each in value if (kind := _kind_of(each)) is not None}
        return f"a list of {' and '.join(sorted(kinds))}" if kinds else None
    return "true or false" if isinstance(value, bool) else "a text" if isinstance(value, str) else "a number"


_values: dict[str, dict[str, Any]] = {}
"""By sweep and digest."""
_lock = threading.Lock()


def execute(request: RunRequest) -> RunReply:
    """Called by the executor."""
    try:
        with _lock:
            values = _received(request)
        digests = (request.function, *request.shared.values())
        if any(digest not in values for digest in digests):
            return Lacking()
        parameters = {name: values[digest] for name, digest in request.shared.items()}
        return rows_of(values[request.function](**request.plain, **parameters), request.names)
    except BadRows as error:
        return RunFailure(str(error))
    except (Exception, SystemExit) as error:
        return RunFailure(_line(error), traceback.format_exc())


def forget(sweep: str) -> None:
    """Drop what this process has received for the sweep."""
    with _lock:
        _values.pop(sweep, None)


def _received(request: RunRequest) -> dict[str, Any]:
    values = _values.pop(request.sweep, {})
    for digest, data in request.sent.items():
        if digest not in values:
            values[digest] = pickle.loads(data)
    _values[request.sweep] = values  # the last one: those before it are the older sweeps
    for old in list(_values)[:-MOST_SWEEPS]:
        del _values[old]
    return values


def _line(error: BaseException) -> str:
    """The error in one line, and where it was raised, unless it is about the input."""
    if isinstance(error, OperatorMistake):
        return " ".join(str(error).split())
    text = " ".join("".join(traceback.format_exception_only(error)).split())
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if frames else text


class BadRows(ValueError):
    """A run returned something else than rows."""


def rows_of(returned: Any, labels: frozenset[str]) -> list[Row]:
    """What a run returned, as rows of plain values: a mapping is one row, a sequence of mappings are several."""
    rows = [returned] if isinstance(returned, Mapping) else returned
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise BadRows(f"a run must return a mapping from columns to values, or a list of them, got {_kind(returned)}")
    return [{_column(name, labels): _plain(value, name) for name, value in row.items()} for row in rows]


def _column(name: Any, labels: frozenset[str]) -> str:
    if not isinstance(name, str):
        raise BadRows(f"names of columns must be texts, got {name!r}")
    if name == ERROR or name in labels:
        raise BadRows(f'the column "{name}" is taken: {"failed runs have it" if name == ERROR else "a parameter"}')
    return name


def _plain(value: Any, column: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise BadRows(f'the column "{column}" has a number of more than 64 bits')
        return int(value)
    if isinstance(value, list | tuple):
        return [_plain(each, column) for each in value]
    raise BadRows(f'the column "{column}" must be a number, a text or a list of these, got {_kind(value)}')


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"
