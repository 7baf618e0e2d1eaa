"""Errors of the API: `metav1.Status` and field errors, with kube-apiserver's reasons and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mooring.apiserver.documents import Document, encode

MAX_ERRORS = 100
"""Errors in one response at most; a hostile object could have a million."""
MAX_ERROR_TEXT = 4 * 1024 * 1024
RESOURCE_EXPIRED = "The provided continue parameter is too old to display a consistent list result."


@dataclass(frozen=True)
class FieldError:
    """One validation error: the field's path, the reason and the message."""

    path: str
    reason: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}"


def quoted(value: Any) -> str:
    """A value as Go's field errors show it."""
    if isinstance(value, str):
        return encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return encode(value).decode()


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {detail}")


def unsupported(path: str, value: Any, allowed: Sequence[str]) -> FieldError:
    supported = ", ".join(quoted(each) for each in sorted(allowed))
    return FieldError(
        path, "FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {supported}"
    )


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {quoted(value)}")


def too_many(path: str, count: int, most: int) -> FieldError:
    items = "item" if most == 1 else "items"
    return FieldError(path, "FieldValueTooMany", f"Too many: {count}: must have at most {most} {items}")


def too_long(path: str, most_bytes: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {most_bytes} bytes")


def forbidden_field(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueForbidden", "Forbidden" + (f": {detail}" if detail else ""))


def not_found_field(path: str, value: Any) -> FieldError:
    return FieldError(path, "FieldValueNotFound", f"Not found: {quoted(value)}")


class StatusError(Exception):
    """A request that fails; `document()` is the Status of the response."""

    def __init__(
        self, code: int, reason: str, message: str, details: Document | None = None, retry_after: int | None = None
    ) -> None:
        self.code, self.reason, self.message, self.details, self.retry_after = (
            code,
            reason,
            message,
            details,
            retry_after,
        )
        super().__init__(message)

    def document(self) -> Document:
        status: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        # kubectl reads the details of every 404, so they must exist.
        if details or self.details is not None:
            status["details"] = details
        return status


def _about(group: str, plural: str, name: str) -> Document:
    details: Document = {"name": name, "kind": plural}
    if group:
        details["group"] = group
    return details


def qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{qualified(group, plural)} "{name}" not found', _about(group, plural, name))


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(group: str, plural: str, name: str) -> StatusError:
    return StatusError(
        409, "AlreadyExists", f'{qualified(group, plural)} "{name}" already exists', _about(group, plural, name)
    )


def conflict(group: str, plural: str, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _about(group, plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    subject = (
        f'{qualified(group, plural)} "{name}" is forbidden' if name else f"{qualified(group, plural)} is forbidden"
    )
    return StatusError(403, "Forbidden", f"{subject}: {why}", _about(group, plural, name))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    shown: list[FieldError] = []
    left = MAX_ERROR_TEXT
    for error in errors[:MAX_ERRORS]:
        left -= len(error.path) + len(error.sentence)
        if shown and left < 0:
            break
        shown.append(error)
    sentences = [str(error) for error in shown]
    if len(shown) < len(errors):
        sentences.append(f"and {len(errors) - len(shown)} more errors")
    problems = sentences[0] if len(sentences) == 1 else "[" + ", ".join(sentences) + "]"
    message = f'{kind}.{group} "{name}" is invalid: {problems}' if group else f'{kind} "{name}" is invalid: {problems}'
    details = _about(group, kind, name)
    details["causes"] = [{"reason": error.reason, "message": error.sentence, "field": error.path} for error in shown]
    return StatusError(422, "Invalid", message, details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(why: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}", {})


def too_many_requests() -> StatusError:
    return StatusError(429, "TooManyRequests", "too many requests, please try again later", {}, retry_after=1)


def success(details: Document | None = None) -> Document:
    status: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status
