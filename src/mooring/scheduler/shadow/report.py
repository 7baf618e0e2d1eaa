"""Comparisons as JSON lines in a file, each with its full evidence."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO

import msgspec

from mooring.base.earlier_output import first_line
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import append, is_stream, open_to_append
from mooring.base.log import Log
from mooring.base.visible import visible_json
from mooring.scheduler.shadow.comparison import Comparison

_log = Log("shadow")
_FIRST_FIELDS = re.compile(r'\{"time":"[^"]+","pod":"[^"]*","uid":')
"""Of a comparison. The whole line may be long: evidence names every node."""


def _plain(value: object) -> object:
    """A number of NumPy's, from a plugin's score; anything else as its text."""
    return value.item() if hasattr(value, "item") else str(value)


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


class JsonLines:
    """Adds to the file, line by line; what an earlier run has written stays."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_lost = False
        try:
            self._file: IO[bytes] = open_to_append(path)
        except OSError as error:
            what = f"{path} cannot be written: {error.strerror}; name a file in a folder that exists and is yours"
            raise _refused(what) from error
        if not is_stream(Path(path)) and not _is_report(path):
            self._file.close()
            raise _refused(f"{path} exists and is no report of comparisons; name another file, or remove it")

    def write(self, comparison: Comparison) -> None:
        """A full disk must not end the comparisons; it is logged once."""
        try:
            # The file is read in terminals.
            line = visible_json(_encode(comparison.as_json()).decode())
            append(self._file, line.encode() + b"\n")
            self._is_lost = False
        except OSError as error:
            if not self._is_lost:
                _log.error("Comparisons were dropped from the report", file=self._path, err=error)
            self._is_lost = True

    def close(self) -> None:
        self._file.close()


def _is_report(path: str) -> bool:
    """Whether comparisons can be added: to those of an earlier run, or where there is nothing yet."""
    return not os.path.getsize(path) or _FIRST_FIELDS.match(first_line(path)) is not None


def _refused(why: str) -> OperatorMistake:
    return OperatorMistake.found_in("the command line", [Problem("--shadow-report", why)])
