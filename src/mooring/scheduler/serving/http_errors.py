"""What the HTTP library says of connections, as lines of our log.

Whoever reaches the port can send what is no HTTP. That is worth a short line for whoever looks for it, not a traceback
in the scheduler's log; and never what was sent, which may hold a token. A few lines a minute are written, then a count.
"""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError

from mooring.base.limited_log import LimitedLog, shortened
from mooring.base.log import Log

_no_http = LimitedLog(Log("serving", 2))
_failures = LimitedLog(Log("serving"))


class _Mishaps(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            _no_http.info("Malformed HTTP request", srcIP=_sender(record), err=type(error).__name__)
        else:
            _failures.error("Failed to serve a request", what=shortened(record.getMessage()), err=error)


def _sender(record: logging.LogRecord) -> str:
    return str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""


def mishaps() -> logging.Logger:
    """A logger of nobody's but the server's."""
    logger = logging.Logger("mooring.serving", logging.WARNING)
    logger.addHandler(_Mishaps())
    return logger
