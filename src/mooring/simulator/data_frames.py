"""Workloads from data frames: the columns of a trace, from pandas, Polars, PyArrow, or a mapping of columns.

No library is needed for these. Others are read by Polars, through the interfaces that data frames share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mooring.base.errors import OperatorMistake
from mooring.simulator.parquet_files import polars

INTERFACES = ("__dataframe__", "__arrow_c_stream__")
_MISSING = ("NAType", "NaTType")
"""pandas' own values for what is missing."""


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """The columns by name, with Python's own values; None: missing."""
    found = {str(name): [_plain(value) for value in column] for name, column in _columns(frame)}
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise OperatorMistake(f"The columns of a data frame must be equally long, got {shown}.")
    return found


def _columns(frame: Any) -> Iterator[tuple[Any, Iterable[Any]]]:
    if isinstance(frame, Mapping):
        columns: Mapping[Any, Any] = frame
    elif hasattr(frame, "to_pydict"):  # PyArrow
        columns = frame.to_pydict()
    elif hasattr(frame, "iter_columns"):  # Polars
        columns = frame.to_dict(as_series=False)
    elif hasattr(frame, "to_dict"):  # pandas
        columns = frame.to_dict("list")
    elif hasattr(frame, INTERFACES[0]) or hasattr(frame, INTERFACES[1]):
        frames = polars("Reading this data frame")
        read = frames.from_dataframe(frame) if hasattr(frame, INTERFACES[0]) else frames.DataFrame(frame)
        columns = read.to_dict(as_series=False)
    else:
        raise OperatorMistake(
            f"A {type(frame).__name__} is no data frame: give one of pandas, Polars or PyArrow, or a dictionary of "
            "columns."
        )
    for name, column in columns.items():
        if isinstance(column, str) or not isinstance(column, Iterable):
            raise OperatorMistake(f'Column "{name}" must be a list of values, got {type(column).__name__}.')
        yield name, column


def _plain(value: Any) -> Any:
    """Without the types of NumPy and pandas."""
    if value is None or type(value).__name__ in _MISSING:
        return None
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        # Nanoseconds would become a number.
        value = (value.astype(f"{value.dtype.kind}8[us]") if value.dtype.kind in "mM" else value).item()
    return None if isinstance(value, float) and value != value else value
