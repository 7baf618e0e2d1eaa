"""How values reach worker processes: by cloudpickle, so that functions and plugins of a notebook arrive as well.

msgspec's structs need help: cloudpickle rebuilds a class from its attributes, and a struct's fields are none.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import types
from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.base.errors import OperatorMistake

StructMeta: type = type(msgspec.Struct)
_META_FIELDS = (
    "gt",
    "ge",
    "lt",
    "le",
    "multiple_of",
    "pattern",
    "min_length",
    "max_length",
    "tz",
    "title",
    "description",
    "examples",
    "extra_json_schema",
    "extra",
)


class Shipment(msgspec.Struct, frozen=True):
    """A value as bytes, under the digest of these bytes."""

    digest: str
    data: bytes


def shipped(value: Any, what: str) -> Shipment:
    """The value as any worker can load it. `what` names it if it cannot be pickled."""
    try:
        import cloudpickle
    except ImportError as error:
        raise OperatorMistake("Sweeps need cloudpickle, which is not installed: pip install cloudpickle.") from error

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, msgspec.Meta):
                set_fields = {name: getattr(value, name) for name in _META_FIELDS if getattr(value, name) is not None}
                return _meta, (set_fields,)
            if isinstance(value, StructMeta) and value.__module__ == "__main__":
                return _struct, _definition(value)
            return super().reducer_override(value)

    buffer = io.BytesIO()
    try:
        Pickler(buffer).dump(value)
    except Exception as error:  # whatever the value's own code raises
        raise OperatorMistake(f"{what} cannot be sent to worker processes: {error}.") from error
    data = buffer.getvalue()
    return Shipment(hashlib.sha256(data).hexdigest(), data)


def _meta(fields: Mapping[str, Any]) -> msgspec.Meta:
    return msgspec.Meta(**fields)


def _definition(struct: Any) -> tuple[Any, ...]:
    """What `_struct` needs to define it again."""
    own = vars(struct).get("__annotations__", {})
    fields = [
        (each.name, each.type, {"default": each.default, "default_factory": each.default_factory})
        for each in msgspec.structs.fields(struct)
        if each.name in own
    ]
    for *_, defaults in fields:
        for kind in ("default", "default_factory"):
            if defaults[kind] is msgspec.NODEFAULT:
                del defaults[kind]
    methods = {
        name: value
        for name, value in vars(struct).items()
        if isinstance(value, types.FunctionType | staticmethod | classmethod | property)
    }
    signature = inspect.signature(struct).parameters
    is_by_keyword = any(signature[name].kind is inspect.Parameter.KEYWORD_ONLY for name, *_ in fields)
    return struct.__name__, fields, struct.__bases__, {"__doc__": struct.__doc__, **methods}, is_by_keyword


def _struct(
    name: str,
    fields: list[tuple[str, Any, dict[str, Any]]],
    bases: tuple[type, ...],
    namespace: dict[str, Any],
    is_by_keyword: bool,
) -> type[msgspec.Struct]:
    """As the class statement would; options other than `kw_only` are those of its bases."""
    body = {
        **namespace,
        "__module__": "__main__",
        "__annotations__": {field: annotation for field, annotation, _ in fields},
        **{field: msgspec.field(**defaults) for field, _, defaults in fields},
    }
    return types.new_class(name, bases, {"kw_only": is_by_keyword}, lambda namespace: namespace.update(body))
