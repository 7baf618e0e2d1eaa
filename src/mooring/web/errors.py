"""Requests that are refused: the HTTP status, and a sentence for the person at the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from mooring.base.errors import OperatorMistake

MOST_NEAR = 5


class RequestError(Exception):
    """Becomes `{"error": {"code", "message", "field"?, "near"?}}`."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        near: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        problems: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.near = list(near)
        self.headers = dict(headers or {})
        self.problems = [dict(each) for each in problems]

    def document(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.status, "message": self.message}
        if self.field is not None:
            error["field"] = self.field
        if self.near:
            error["near"] = self.near
        if self.problems:
            error["problems"] = self.problems
        return {"error": error}


def refused(error: OperatorMistake, *, field: str | None = None, status: int = 400) -> RequestError:
    """A mistake in what the user sent. One problem is in the message; of several each is in `problems` alone."""
    problems = [{"path": each.path, "message": each.message, "line": each.line} for each in error.problems]
    message = error.summary
    if len(error.problems) == 1:
        [only] = error.problems
        line = f" (line {only.line})" if only.line is not None else ""
        message = f"{error.summary} {only.path}{line}: {only.message}"
    return RequestError(status, message, field=field, problems=problems)


def not_found(what: str, name: str, known: Iterable[str], *, where: str = "") -> RequestError:
    """404, with the nearest names: by their beginning, or by letters."""
    names = sorted(known)
    near = [each for each in names if each.startswith(name)][:MOST_NEAR]
    near = near or get_close_matches(name, names, n=MOST_NEAR)
    return RequestError(404, f'there is no {what} "{name}"{where}.', near=near)


def too_many(message: str, *, status: int = 429, seconds: int = 1) -> RequestError:
    """Try later."""
    return RequestError(status, message, headers={"Retry-After": str(seconds)})
