"""Any document, with or without type errors, is stored or rejected; none causes an internal error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.documents import copied
from mooring.apiserver.negotiation import decode_object
from mooring.apiserver.options import FieldValidation
from mooring.apiserver.patches import merge_patch
from mooring.apiserver.resources import Resource
from mooring.apiserver.schema import (
    ApiType,
    BooleanType,
    IntegerType,
    IntOrStringType,
    ListType,
    MapType,
    NumberType,
    QuantityType,
    StructType,
    TextType,
    TimeType,
    schema_of,
)
from mooring.apiserver.status import StatusError

SERVER = EmbeddedApiServer()
ROWS = [row for row in SERVER.registry.table if "create" in row.verbs and "get" in row.verbs]

texts = st.sampled_from(["", "a", "web", "Always", "None", "x/y", "-", "node-1", "25%", "é", "a=b", "RollingUpdate"])
scalars: dict[type[ApiType], st.SearchStrategy[Any]] = {
    TextType: texts,
    BooleanType: st.booleans(),
    NumberType: st.floats(allow_nan=False, allow_infinity=False),
    IntegerType: st.sampled_from([-1, 0, 1, 80, 2**31 - 1]),
    IntOrStringType: st.sampled_from([0, 1, -1, "25%", "x"]),
    QuantityType: st.sampled_from(["0", "1", "500m", "-1", "1Gi", "1e3", 2, 0.5]),
    TimeType: st.just("2023-11-14T22:13:20Z"),
}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def values(draw: st.DrawFn, kind: ApiType, depth: int = 0) -> Any:
    """A value of that type; now and then one that is not."""
    if draw(st.integers(0, 60)) == 0:
        return draw(anything)
    if isinstance(kind, StructType):
        names = sorted(kind.fields)
        most = 6 if depth < 6 else 0
        chosen = draw(st.lists(st.sampled_from(names), max_size=most, unique=True)) if names else []
        if depth == 0:
            chosen = sorted({*chosen, *({"spec", "metadata"} & set(names))})
        return {
            name: draw(values(kind.fields[name], depth + 1)) for name in chosen if name not in ("kind", "apiVersion")
        }
    if isinstance(kind, ListType):
        return [draw(values(kind.of, depth + 1)) for _ in range(draw(st.integers(0, 2)))]
    if isinstance(kind, MapType):
        return {draw(texts): draw(values(kind.of, depth + 1)) for _ in range(draw(st.integers(0, 2)))}
    for type_, strategy in scalars.items():
        if isinstance(kind, type_):
            return draw(strategy)
    return draw(anything)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Resource, dict[str, Any], dict[str, Any]]:
    row = draw(st.sampled_from(ROWS))
    assert row.type_name is not None
    kind = schema_of(row.type_name)
    document, patch = draw(values(kind)), draw(values(kind))
    return row, document if isinstance(document, dict) else {}, patch if isinstance(patch, dict) else {}


def accepted(request: Callable[[], object]) -> bool:
    """Whether the request is done; the alternative is a refusal that blames the client, nothing else."""
    try:
        request()
    except StatusError as refused:
        if not 400 <= refused.code < 500:
            raise
        return False
    return True


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(requests())
def test_a_document_is_stored_or_refused(request: tuple[Resource, dict[str, Any], dict[str, Any]]):
    row, document, patch = request
    registry, namespace = SERVER.registry, "default" if row.namespaced else ""
    if isinstance(document.get("metadata"), dict):
        document["metadata"] = {**document["metadata"], "namespace": namespace, "name": "it"}
    else:
        document["metadata"] = {"name": "it"}
    document.pop("apiVersion", None)
    document.pop("kind", None)
    stored = registry.store.stored(row.storage, namespace, "it")
    if stored is not None:
        registry.store.delete(row.storage, stored)
    if not accepted(lambda: registry.create(row, namespace, decode_object(copied(document), row, FieldValidation()))):
        return
    patch.pop("metadata", None)

    def change(old: dict[str, Any]) -> dict[str, Any]:
        return decode_object(merge_patch(old, patch), row, FieldValidation())

    accepted(lambda: registry.update(row, namespace, "it", change))
    accepted(lambda: registry.update(row, namespace, "it", change, status=True))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.qualified)
def test_an_empty_document_is_stored_or_refused(row: Resource):
    server = EmbeddedApiServer()
    namespace = "default" if row.namespaced else ""
    document = decode_object({"metadata": {"name": "it"}}, row, FieldValidation())
    accepted(lambda: server.registry.create(row, namespace, document))
