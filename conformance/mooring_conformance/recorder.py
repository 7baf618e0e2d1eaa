"""A real scheduler: a process that reads a case a line and writes what it decides, a line each.

`scripts/build-recorder` builds it from the unmodified packages of kube-scheduler. Families of community plugins, and
that of pod groups, have recorders of their own.
"""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from mooring.base.errors import Fault, OperatorMistake

Json = dict[str, Any]


class Recorder:
    """A running recorder. It decides one case after the other and keeps nothing between them."""

    def __init__(self, program: Path, *, timed: bool = False) -> None:
        """`timed`: it adds to each decision the CPU seconds of the scheduling cycle, as `seconds`."""
        self._program = program
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process whose words it keeps
        try:
            self._process = subprocess.Popen(
                [program, *(["-seconds"] if timed else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
            )
        except OSError as error:
            self._complaints.close()
            hint = "scripts/build-recorder builds one and prints its path"
            raise OperatorMistake(f"the recorder {program} cannot be started: {error.strerror}; {hint}.") from error

    def __str__(self) -> str:
        return f"the recorder {self._program}"

    def record(self, case: Json) -> Json:
        """What kube-scheduler decides about the case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(case) + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        try:
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=Json)
        except msgspec.DecodeError as error:
            raise Fault(f"the recorder {self._program} wrote what is no JSON object: {error}.") from error
        raise Fault(f"the recorder {self._program} ended before it decided{self._last_words()}.")

    def _last_words(self) -> str:
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def close(self) -> None:
        """It ends when there is nothing more to read."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._complaints.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
