"""Query parameters: booleans, numbers and the option objects of each verb, decoded as kube-apiserver decodes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import (
    FieldError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    quoted,
    unsupported,
)

if TYPE_CHECKING:
    from multidict import MultiMapping

T = TypeVar("T")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64_DIGITS = 19
_META = "meta.k8s.io"
MAX_FIELD_MANAGER = 128
MAX_UNKNOWN_FIELDS = 100


def boolean(query: Mapping[str, str], name: str) -> bool | None:
    """False only for `0` and `false` in any case; None where it is absent."""
    text = query.get(name)
    return None if text is None else text != "0" and text.casefold() != "false"


def whole_number(query: Mapping[str, str], name: str) -> int | None:
    """A 64-bit number; None where it is absent."""
    text = query.get(name)
    if text is None:
        return None
    why = "invalid syntax"
    if _INTEGER.fullmatch(text):
        why = "value out of range"
        if len(text.lstrip("+-").lstrip("0")) <= _INT64_DIGITS and -(2**63) <= (number := int(text)) < 2**63:
            return number
    raise bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {why}: {name} must be a whole number")


def revision_of(text: str) -> int | None:
    """A resourceVersion as a number; None for "" and "0", which any revision satisfies."""
    if text in ("", "0"):
        return None
    why = "invalid syntax"
    if text.isascii() and text.isdigit():
        why = "value out of range"
        if len(text.lstrip("0")) <= _INT64_DIGITS + 1 and (number := int(text)) < 2**64:
            return number or None
    why = f"strconv.ParseUint: parsing {quoted(text)}: {why}"
    raise invalid(_META, "ListOptions", "", [invalid_value("resourceVersion", text, why)])


@dataclass(frozen=True)
class ListOptions:
    """Options of a list, a watch or a deletion of a collection, apart from selectors."""

    is_watch: bool = False
    bookmarks: bool = False
    send_initial_events: bool | None = None
    resource_version: str = ""
    match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    token: str = ""

    def problems(self) -> list[FieldError]:
        return self._watch_problems() if self.is_watch else self._list_problems()

    def _list_problems(self) -> list[FieldError]:
        errors: list[FieldError] = []
        if self.match:
            if not self.resource_version:
                errors.append(_match_forbidden("unless resourceVersion is provided"))
            if self.token:
                errors.append(_match_forbidden("when continue is provided"))
            if self.match not in ("Exact", "NotOlderThan"):
                errors.append(unsupported("resourceVersionMatch", self.match, ("Exact", "NotOlderThan", "")))
            if self.match == "Exact" and self.resource_version == "0":
                why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
                errors.append(forbidden_field("resourceVersionMatch", why))
        if self.send_initial_events is not None:
            errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return errors

    def _watch_problems(self) -> list[FieldError]:
        errors: list[FieldError] = []
        if self.send_initial_events is not None and self.match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(forbidden_field("resourceVersionMatch", why))
        if self.match:
            if self.send_initial_events is None:
                errors.append(_match_forbidden("for watch unless sendInitialEvents is provided"))
            if self.match != "NotOlderThan":
                errors.append(unsupported("resourceVersionMatch", self.match, ("NotOlderThan",)))
            if self.token:
                errors.append(_match_forbidden("when continue is provided"))
        return errors


def _match_forbidden(why: str) -> FieldError:
    return forbidden_field("resourceVersionMatch", f"resourceVersionMatch is forbidden {why}")


def list_options(query: Mapping[str, str]) -> ListOptions:
    if not query:
        return ListOptions()
    options = ListOptions(
        is_watch=boolean(query, "watch") or False,
        bookmarks=boolean(query, "allowWatchBookmarks") or False,
        send_initial_events=boolean(query, "sendInitialEvents"),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        timeout_seconds=whole_number(query, "timeoutSeconds"),
        limit=whole_number(query, "limit") or 0,
        token=query.get("continue", ""),
    )
    if errors := options.problems():
        raise invalid(_META, "ListOptions", "", errors)
    return options


@dataclass
class FieldValidation:
    """The `fieldValidation` directive: ignore, warn about or reject unknown fields; collects the warnings."""

    mode: str = "Warn"
    warnings: list[str] = field(default_factory=list)

    def report(self, subject: str, problems: list[str]) -> None:
        if not problems or self.mode == "Ignore":
            return
        if self.mode == "Strict":
            raise bad_request(f"{subject}: strict decoding error: {', '.join(problems[:MAX_UNKNOWN_FIELDS])}")
        self.warnings += problems[:MAX_UNKNOWN_FIELDS]


@dataclass(frozen=True)
class WriteOptions:
    """Options of a create, update or patch."""

    dry_run: bool
    policy: FieldValidation


def write_options(query: MultiMapping[str], kind: str = "CreateOptions") -> WriteOptions:
    """`kind` names the options in errors: CreateOptions, UpdateOptions, PatchOptions."""
    if not query:
        return WriteOptions(False, FieldValidation())
    errors = _manager_problems(query.get("fieldManager", ""))
    if kind == "PatchOptions" and "force" in query:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    dry_run = _dry_run(query.getall("dryRun", []), errors)
    mode = query.get("fieldValidation", "") or "Warn"
    if mode not in ("Ignore", "Warn", "Strict"):
        errors.append(unsupported("fieldValidation", mode, ["", "Ignore", "Strict", "Warn"]))
    if errors:
        raise invalid(_META, kind, "", errors)
    return WriteOptions(dry_run, FieldValidation(mode))


def _manager_problems(manager: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(manager.encode(errors="replace")) > MAX_FIELD_MANAGER:
        sentence = f"Too long: may not be more than {MAX_FIELD_MANAGER} bytes"
        errors.append(FieldError("fieldManager", "FieldValueTooLong", sentence))
    at = next((at for at, letter in enumerate(manager) if not letter.isprintable()), None)
    if at is not None:
        why = f"invalid character U+{ord(manager[at]):04X} (at position {at})"
        errors.append(invalid_value("fieldManager", manager, why))
    return errors


def _dry_run(values: list[str], errors: list[FieldError]) -> bool:
    if any(value != "All" for value in values):
        errors.append(unsupported("dryRun", values, ["All"]))
    return bool(values)


@dataclass(frozen=True)
class DeleteOptions:
    """Options of a deletion; `uid` and `resource_version` are preconditions."""

    grace_seconds: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


def delete_options(query: MultiMapping[str], body: Document | None = None) -> DeleteOptions:
    """The options of a body that passed the schema of DeleteOptions, or else of the query."""
    errors: list[FieldError] = []
    preconditions = part(body or {}, "preconditions")
    if body is not None:
        grace_seconds = _as(int, body.get("gracePeriodSeconds"))
        orphan_dependents = _as(bool, body.get("orphanDependents"))
        propagation = _as(str, body.get("propagationPolicy"))
        dry_run = _dry_run(items_of(body, "dryRun"), errors)
    else:
        grace_seconds = whole_number(query, "gracePeriodSeconds")
        orphan_dependents = boolean(query, "orphanDependents")
        propagation = query.get("propagationPolicy")
        dry_run = _dry_run(query.getall("dryRun", []), errors)
    if propagation is not None and orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", propagation, why))
    if propagation is not None and propagation not in ("Foreground", "Background", "Orphan"):
        errors.append(unsupported("propagationPolicy", propagation, ("Foreground", "Background", "Orphan", "nil")))
    if errors:
        raise invalid(_META, "DeleteOptions", "", errors)
    return DeleteOptions(
        grace_seconds=grace_seconds,
        propagation="Orphan" if orphan_dependents else propagation,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=dry_run,
    )


def _as(kind: type[T], value: object) -> T | None:
    return value if isinstance(value, kind) else None
