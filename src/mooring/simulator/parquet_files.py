"""Polars, which reads and writes Parquet: an optional library, imported when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from mooring.base.errors import OperatorMistake


def polars(purpose: str) -> Any:
    """The module. `purpose` begins the sentence that reports that it is missing."""
    try:
        return importlib.import_module("polars")
    except ImportError as error:
        raise OperatorMistake(f"{purpose} needs polars: pip install polars.") from error
