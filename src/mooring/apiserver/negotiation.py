"""Content negotiation: the shape of the response, and decoding of request bodies."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mooring.apiserver import protobuf
from mooring.apiserver.documents import Document, decode
from mooring.apiserver.options import FieldValidation
from mooring.apiserver.resources import Resource
from mooring.apiserver.schema import WrongType, coerce
from mooring.apiserver.status import bad_request, unsupported_media_type
from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake
from mooring.base.nesting import TooDeep, refuse_deep

Shape = Literal["object", "table", "metadata"]
JSON = "application/json"


def shape_of(accept: str) -> Shape:
    """Objects, a table for printing, or only metadata: the first of the accepted types that is served."""
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


def parse_body(body: bytes, content_type: str) -> Any:
    """The body, decoded by its content type: JSON, YAML or Kubernetes protobuf."""
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
        problems = "; ".join(f"line {problem.line}: {problem.message}" for problem in wrong.problems)
        raise bad_request(f"error converting YAML to JSON: yaml: {problems}") from None
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {JSON}, application/yaml"
    )


def decode_object(document: Any, row: Resource, policy: FieldValidation) -> Document:
    """The body as an object of this row: kind and types are checked, unknown fields pruned and reported by `policy`."""
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
        unknown = row.custom.coerce(document)
        if not isinstance(document.get("metadata", {}), dict):
            raise bad_request(f"{subject}: metadata must be an object")
    elif row.type_name is not None:
        try:
            unknown = coerce(document, row.type_name)
        except WrongType as wrong:
            raise bad_request(f"{subject}: {wrong.sentence}") from None
    else:
        unknown = []
    policy.report(subject, [f'unknown field "{path}"' for path in unknown])
    return document


def decode_as(document: Any, type_name: str, kind: str) -> Document:
    """A body of another kind than the row's: a Binding, DeleteOptions, a Scale."""
    if not isinstance(document, dict):
        raise bad_request("the object provided is unrecognized (must be of type Object)")
    try:
        coerce(document, type_name)
    except WrongType as wrong:
        raise bad_request(f"{kind} cannot be handled: {wrong.sentence}") from None
    return document
