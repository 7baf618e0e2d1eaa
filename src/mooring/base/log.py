"""Structured log lines with kube-scheduler's verbosity levels, as text (klog's form) or JSON.

A line is a message and key/value pairs: `log.info("Successfully bound pod to node", pod=pod, node=name)`.
`log.v(6)` is a log that writes only at `-v=6` or more; it is falsy otherwise, so that a hot path can guard
the making of expensive values: `if debug := log.v(6): debug.info(…)`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from mooring.base.clock import micro_timestamp
from mooring.base.foreign_code import text_of
from mooring.base.redaction import scrubbed
from mooring.base.visible import is_visible, visible_json

Severity = Literal["I", "W", "E"]
_JSON_LEVELS = {"I": "info", "W": "warning", "E": "error"}


@dataclass
class LogSettings:
    """Where lines go and which are written. One per process, changed through `configure`."""

    verbosity: int = 0
    format: Literal["text", "json"] = "text"
    stream: TextIO | None = None
    info_stream: TextIO | None = None
    """Where lines go that are no errors or warnings, if elsewhere."""
    process: str = ""
    """Before the names of logs: which of several processes that share a terminal writes the line."""


_settings = LogSettings()
_lock = threading.Lock()


def configure(
    *,
    verbosity: int | None = None,
    format: Literal["text", "json"] | None = None,
    stream: TextIO | None = None,
    info_stream: TextIO | None = None,
    process: str | None = None,
) -> None:
    """Set what is given, keep the rest."""
    if verbosity is not None:
        _settings.verbosity = verbosity
    if format is not None:
        _settings.format = format
    if stream is not None:
        _settings.stream = stream
    if info_stream is not None:
        _settings.info_stream = info_stream
    if process is not None:
        _settings.process = process


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """While inside, nothing is written: for work whose result has all that a reader needs."""
    before, _settings.verbosity = _settings.verbosity, -1
    try:
        yield
    finally:
        _settings.verbosity = before


def settings() -> LogSettings:
    """What is in force now: for starting another process that logs alike."""
    return _settings


def _shown(value: object) -> str:
    """A pod or node is shown as kube-scheduler shows it: `namespace/name` or `name`."""
    metadata = getattr(value, "metadata", None)
    if metadata is not None and hasattr(metadata, "name"):
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)
    return scrubbed(text_of(value))


def _plain(value: object) -> Any:
    return value if isinstance(value, int | float | bool | type(None)) else _shown(value)


class Log:
    """Writes lines under one name (the subject or plugin that logs)."""

    __slots__ = ("_level", "name")

    def __init__(self, name: str, level: int = 0) -> None:
        self.name = name
        self._level = level

    def __bool__(self) -> bool:
        return self._level <= _settings.verbosity

    def v(self, level: int) -> Log:
        """The same log at a verbosity: silent (and falsy) below `-v=level`."""
        return Log(self.name, level) if level <= _settings.verbosity else _SILENT

    def info(self, message: str, /, **values: object) -> None:
        if self:
            self._write("I", message, values)

    def warning(self, message: str, /, **values: object) -> None:
        if self:
            self._write("W", message, values)

    def error(self, message: str, /, **values: object) -> None:
        if self:
            self._write("E", message, values)

    def _write(self, severity: Severity, message: str, values: dict[str, object]) -> None:
        now, name = time.time(), f"{_settings.process}/{self.name}" if _settings.process else self.name
        if _settings.format == "json":
            line = json.dumps(
                {
                    "ts": micro_timestamp(now),
                    "level": _JSON_LEVELS[severity],
                    "v": self._level,
                    "logger": name,
                    "msg": scrubbed(message),
                }
                | {key: _plain(value) for key, value in values.items()},
                ensure_ascii=False,
            )
        else:
            stamp = time.strftime("%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"
            pairs = "".join(f" {key}={json.dumps(_plain(value), ensure_ascii=False)}" for key, value in values.items())
            quoted = json.dumps(scrubbed(message), ensure_ascii=False)
            line = f"{severity}{stamp} {os.getpid():7d} {name}] {quoted}{pairs}"
        if not is_visible(line):
            line = visible_json(line).replace("\n", "\\n")
        with _lock:
            stream = (severity == "I" and _settings.info_stream) or _settings.stream or sys.stderr
            stream.write(line + "\n")
            stream.flush()


def adopt_library_logs() -> None:
    """Warnings and errors of asyncio, aiohttp and others as lines of this log: a traceback is one value in a line.

    Only what no handler takes: a program that embeds Mooring and configures Python's logging keeps that.
    """
    import logging
    import traceback

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log = Log(record.name)
            write = log.error if record.levelno >= logging.ERROR else log.warning
            trace = "".join(traceback.format_exception(*record.exc_info)).rstrip() if record.exc_info else None
            write(record.getMessage(), **({"trace": trace} if trace is not None else {}))

    logging.lastResort = Lines(logging.WARNING)


class _Silent(Log):
    """Writes nothing, and costs a hot path next to nothing."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def info(self, message: str, /, **values: object) -> None:
        pass

    def warning(self, message: str, /, **values: object) -> None:
        pass

    def error(self, message: str, /, **values: object) -> None:
        pass


_SILENT = _Silent("")
