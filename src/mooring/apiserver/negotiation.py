"""What a request's headers and body say: answer format, dry run, field validation, the object itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from mooring.apiserver import protobuf
from mooring.apiserver.documents import Document, decode
from mooring.apiserver.resources import Resource
from mooring.apiserver.schema import WrongType, take
from mooring.apiserver.status import bad_request, invalid, unsupported, unsupported_media_type
from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake
from mooring.base.nesting import TooDeep, refuse_deep

Shape = Literal["object", "table", "metadata"]
JSON = "application/json"


def shape_of(accept: str) -> Shape:
    """Whether the client wants objects, a table for printing, or only metadata: the first it names that we have."""
    if "as=" not in accept:
        return "object"
    for option in accept.split(","):
        if "as=Table" in option and "g=meta.k8s.io" in option and "v=v1;" in option.replace(" ", "") + ";":
            return "table"
        if "as=PartialObjectMetadata" in option and JSON in option:
            return "metadata"
        if option.strip().startswith((JSON, "*/*")) and "as=" not in option:
            return "object"
    return "object"


def is_dry_run(query: Mapping[str, str]) -> bool:
    asked = query.get("dryRun", "")
    if asked not in ("", "All"):
        raise invalid("meta.k8s.io", "CreateOptions", "", [unsupported("dryRun", asked, ["All"])])
    return asked == "All"


def whole_number(query: Mapping[str, str], name: str) -> int | None:
    """A number of the query string; None where it is absent."""
    text = query.get(name, "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(
            f'strconv.ParseInt: parsing "{text}": invalid syntax: {name} must be a whole number'
        ) from None


@dataclass
class FieldPolicy:
    """What to do about fields that a kind does not have, and what was found."""

    mode: str = "Warn"
    warnings: list[str] = field(default_factory=list)

    def judge(self, subject: str, problems: list[str]) -> None:
        if not problems or self.mode == "Ignore":
            return
        if self.mode == "Strict":
            raise bad_request(f"{subject}: strict decoding error: {', '.join(problems)}")
        self.warnings += problems


def field_policy(query: Mapping[str, str]) -> FieldPolicy:
    mode = query.get("fieldValidation", "") or "Warn"
    if mode not in ("Ignore", "Warn", "Strict"):
        errors = [unsupported("fieldValidation", mode, ["Ignore", "Strict", "Warn"])]
        raise invalid("meta.k8s.io", "CreateOptions", "", errors)
    return FieldPolicy(mode)


def parse_body(body: bytes, content_type: str) -> Any:
    """JSON, or YAML where the client says so."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == protobuf.CONTENT_TYPE:
            return protobuf.read_object(body)
        if kind in ("application/yaml", "text/yaml") or kind.endswith("+yaml"):
            return read_tree(body, "the body", strict=False).plain()
        if kind in ("", JSON, "*/*", "application/octet-stream", "text/plain") or kind.endswith("+json"):
            refuse_deep(body)
            return decode(body)
    except TooDeep as wrong:
        raise bad_request(f"the object provided is unrecognized: {wrong}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise bad_request(f"the object provided is unrecognized (must be of type Object): {wrong}") from None
    except protobuf.BadProtobuf as wrong:
        raise bad_request(str(wrong)) from None
    except OperatorMistake as wrong:
        told = "; ".join(f"line {problem.line}: {problem.message}" for problem in wrong.problems)
        raise bad_request(f"error converting YAML to JSON: yaml: {told}") from None
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {JSON}, application/yaml"
    )


def typed(document: Any, row: Resource, policy: FieldPolicy) -> Document:
    """The body as an object of this row: right kind, right types, unknown fields judged."""
    if not isinstance(document, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    kind = document.setdefault("kind", row.kind)
    api_version = document.setdefault("apiVersion", row.api_version)
    if kind != row.kind:
        raise bad_request(
            f'{kind} in version "{row.version}" cannot be handled as a {row.kind}: the kind does not match'
        )
    if api_version != row.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({row.api_version})"
        )
    subject = f'{row.kind} in version "{row.version}" cannot be handled as a {row.kind}'
    if row.custom is not None:
        unknown = row.custom.take(document)
        if not isinstance(document.get("metadata", {}), dict):
            raise bad_request(f"{subject}: metadata must be an object")
    elif row.type_name is not None:
        try:
            unknown = take(document, row.type_name)
        except WrongType as wrong:
            raise bad_request(f"{subject}: {wrong.sentence}") from None
    else:
        unknown = []
    policy.judge(subject, [f'unknown field "{path}"' for path in unknown])
    return document


def checked_as(document: Any, type_name: str, kind: str) -> Document:
    """A body that is not the row's own kind: a Binding, DeleteOptions, a Scale."""
    if not isinstance(document, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    try:
        take(document, type_name)
    except WrongType as wrong:
        raise bad_request(f"{kind} cannot be handled: {wrong.sentence}") from None
    return document
