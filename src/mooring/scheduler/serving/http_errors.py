"""The HTTP library's errors about connections, as lines of our log.

Any client that reaches the port can send malformed HTTP. That is worth a short line at a higher verbosity, not a
traceback in the scheduler's log; and never what was sent, which may hold a token. A few lines a minute are written,
then a count.
"""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError

from mooring.base.limited_log import LimitedLog, shortened
from mooring.base.log import Log

_no_http = LimitedLog(Log("serving", 2))
_failures = LimitedLog(Log("serving"))


class _ErrorHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            _no_http.info("Malformed HTTP request", srcIP=_sender(record), err=type(error).__name__)
        else:
            _failures.error("Failed to serve a request", what=shortened(record.getMessage()), err=error)


def _sender(record: logging.LogRecord) -> str:
    return str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""


def error_logger() -> logging.Logger:
    """A logger for the server only."""
    logger = logging.Logger("mooring.serving", logging.WARNING)
    logger.addHandler(_ErrorHandler())
    return logger
