"""Comparisons as JSON lines in a file, each with its full evidence."""

from __future__ import annotations

from typing import IO

import msgspec

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import open_to_append
from mooring.base.log import Log
from mooring.base.visible import visible_json
from mooring.scheduler.shadow.comparison import Comparison

_log = Log("shadow")


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
            raise OperatorMistake.found_in("the command line", [Problem("--shadow-report", what)]) from error

    def write(self, comparison: Comparison) -> None:
        """A full disk must not end the comparisons; it is logged once."""
        try:
            # The file is read in terminals.
            line = visible_json(_encode(comparison.as_json()).decode())
            self._file.write(line.encode() + b"\n")
            self._is_lost = False
        except OSError as error:
            if not self._is_lost:
                _log.error("Comparisons were dropped from the report", file=self._path, err=error)
            self._is_lost = True

    def close(self) -> None:
        self._file.close()
