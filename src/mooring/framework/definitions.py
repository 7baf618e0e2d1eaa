"""The CustomResourceDefinition of a plugin author's kind, from its Python class: nothing is written twice.

The structural schema follows from the types of the fields, `Meta` gives bounds and descriptions, docstrings describe
the structures. Fields without a default are required. Defaults themselves stay in Python: in the schema they would be
written into every stored object, and a later version of the plugin could not change them. What only the API server
should check stands in `Meta(extra_json_schema=…)`.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import inspect as types

from mooring.base.errors import OperatorMistake, Problem
from mooring.objects.meta import CustomResource

APPROVED = "api-approved.kubernetes.io"
PROTECTED_DOMAINS = ("k8s.io", "kubernetes.io")
ANYTHING = "x-kubernetes-preserve-unknown-fields"

_IDENTITY = {
    "apiVersion": "The group and version of this object's schema.",
    "kind": "What this object is.",
}
_SCALARS: dict[type[types.Type], dict[str, Any]] = {
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer", "format": "int64"},
    types.FloatType: {"type": "number"},
    types.StrType: {"type": "string"},
    types.BytesType: {"type": "string", "format": "byte"},
    types.DateTimeType: {"type": "string", "format": "date-time"},
    types.DateType: {"type": "string", "format": "date"},
    types.AnyType: {ANYTHING: True},
    types.RawType: {ANYTHING: True},
}
_LISTS = (types.ListType, types.SetType, types.FrozenSetType, types.VarTupleType)
_BOUNDS: dict[str, dict[str, Any]] = {
    "ge": {"minimum": None},
    "le": {"maximum": None},
    "gt": {"minimum": None, "exclusiveMinimum": True},
    "lt": {"maximum": None, "exclusiveMaximum": True},
    "multiple_of": {"multipleOf": None},
    "pattern": {"pattern": None},
}
"""What a bound of msgspec is called in a schema; None is where its value goes."""
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}


def install_command(plugin: str, paths: Sequence[str] = ()) -> str:
    """What installs the definitions of a plugin's kinds. `paths`: where it comes from, if it is not installed."""
    named = [part for path in paths for part in ("--plugins", path)]
    return f"{shlex.join(['mooring', 'crd', 'generate', plugin, *named])} | kubectl apply -f -"


def definition_of(kind: type[CustomResource]) -> dict[str, Any]:
    """The CustomResourceDefinition, as a document to apply. Raises `OperatorMistake` with all it cannot express."""
    problems = [*_group_problems(kind)]
    schema = _root_schema(kind, problems)
    if problems:
        raise OperatorMistake(f"{kind.__name__} cannot be made a CustomResourceDefinition.", problems)
    served = {"name": kind.KIND.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if "status" in schema["properties"] and kind.HAS_STATUS_SUBRESOURCE:
        served["subresources"] = {"status": {}}
    if kind.COLUMNS:
        served["additionalPrinterColumns"] = [
            {"name": column.name, "type": column.type, "jsonPath": column.path} for column in kind.COLUMNS
        ]
    metadata: dict[str, Any] = {"name": kind.KIND.name}
    if kind.APPROVED:
        metadata["annotations"] = {APPROVED: kind.APPROVED}
    names: dict[str, Any] = {
        "kind": kind.KIND.kind,
        "listKind": f"{kind.KIND.kind}List",
        "plural": kind.KIND.plural,
        "singular": kind.KIND.kind.lower(),
    }
    if kind.SHORT_NAMES:
        names["shortNames"] = list(kind.SHORT_NAMES)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.KIND.group,
            "names": names,
            "scope": "Namespaced" if kind.KIND.namespaced else "Cluster",
            "versions": [served],
        },
    }


def _group_problems(kind: type[CustomResource]) -> Iterator[Problem]:
    """What the API server would refuse about the group."""
    group = kind.KIND.group
    if "." not in group:
        yield Problem(f"class {kind.__name__}(…, group=…)", f'must be a domain with at least one dot, got "{group}"')
    is_protected = any(group == domain or group.endswith("." + domain) for domain in PROTECTED_DOMAINS)
    if is_protected and not kind.APPROVED.startswith(("unapproved", "https://", "http://")):
        yield Problem(
            f"class {kind.__name__}(…, approved=…)",
            f'{group} is a protected group: give the URL of its approval, or a reason that begins with "unapproved"',
        )


def _root_schema(kind: type[CustomResource], problems: list[Problem]) -> dict[str, Any]:
    try:
        info = types.type_info(kind)
    except (NameError, TypeError) as error:  # what reading the author's annotations may raise
        problems.append(Problem(f"class {kind.__name__}", f"its type hints cannot be read: {error}"))
        return {"properties": {}}
    schema = _Schemas(problems).of(info, "")
    own = schema["properties"]
    identity = {name: {"type": "string", "description": text} for name, text in _IDENTITY.items()}
    # What metadata holds is the API server's affair: a schema may only declare it.
    return schema | {"properties": identity | own | {"metadata": {"type": "object"}}}


class _Schemas:
    """Turns types into structural schemas; `problems` collects the fields that have none."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._inside: list[type] = []

    def of(self, kind: types.Type, path: str) -> dict[str, Any]:
        if isinstance(kind, types.Metadata):
            return self.of(kind.type, path) | (kind.extra_json_schema or {})
        if type(kind) in _SCALARS:
            return _SCALARS[type(kind)] | _bounds(kind, _SCALARS[type(kind)].get("type", ""))
        if isinstance(kind, types.StructType):
            return self._struct(kind, path)
        if isinstance(kind, types.DictType):
            return self._mapping(kind, path)
        if isinstance(kind, _LISTS):
            items = self.of(kind.item_type, f"{path}[]")
            is_set = isinstance(kind, types.SetType | types.FrozenSetType)
            unordered = {"x-kubernetes-list-type": "set"} if is_set else {}
            return {"type": "array", "items": items} | unordered | _bounds(kind, "array")
        if isinstance(kind, types.LiteralType):
            return self._choice(kind.values, path)
        if isinstance(kind, types.EnumType):
            return self._choice([member.value for member in kind.cls], path)
        if isinstance(kind, types.UnionType):
            return self._union(kind, path)
        return self._unsupported(path, f"{type(kind).__name__.removesuffix('Type')} has no structural schema")

    def _struct(self, kind: types.StructType, path: str) -> dict[str, Any]:
        if kind.cls in self._inside:
            return self._unsupported(path, f"{kind.cls.__name__} holds itself, which no structural schema can express")
        if kind.tag is not None or kind.array_like:
            return self._unsupported(path, f"{kind.cls.__name__} is tagged or written as an array")
        self._inside.append(kind.cls)
        is_root = not path
        fields = [field for field in kind.fields if not (is_root and field.name == "metadata")]
        described = {"description": text} if (text := _documentation(kind.cls)) else {}
        properties = {
            field.encode_name: self.of(field.type, f"{path}.{field.encode_name}".lstrip(".")) for field in fields
        }
        self._inside.pop()
        required = sorted(field.encode_name for field in fields if field.required)
        return (
            {"type": "object"}
            | described
            | ({"properties": properties} if properties or is_root else {})
            | ({"required": required} if required else {})
        )

    def _mapping(self, kind: types.DictType, path: str) -> dict[str, Any]:
        key = kind.key_type.type if isinstance(kind.key_type, types.Metadata) else kind.key_type
        if not isinstance(key, types.StrType | types.AnyType):
            return self._unsupported(path, "the keys of a mapping must be str")
        values = self.of(kind.value_type, f"{path}[]")
        return {"type": "object", "additionalProperties": values} | _bounds(kind, "object")

    def _choice(self, values: Collection[object], path: str) -> dict[str, Any]:
        choices = [value for value in values if value is not None]
        for kind, name in ((str, "string"), (bool, "boolean"), (int, "integer")):
            if all(isinstance(value, kind) for value in choices):
                schema = {"type": name, "enum": choices}
                return _or_null(schema) if None in values else schema
        return self._unsupported(path, "the choices must be all text or all whole numbers")

    def _union(self, kind: types.UnionType, path: str) -> dict[str, Any]:
        others = [part for part in kind.types if not isinstance(part, types.NoneType)]
        if len(others) == 1:
            schema = self.of(others[0], path)
        elif {type(part) for part in others} == {types.IntType, types.StrType}:
            schema = {"x-kubernetes-int-or-string": True}
        else:
            schema = self._unsupported(path, "a field has one type (or `| None`, or `int | str`)")
        return _or_null(schema) if kind.includes_none else schema

    def _unsupported(self, path: str, why: str) -> dict[str, Any]:
        self._problems.append(Problem(path, why))
        return {ANYTHING: True}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    # The server holds null against the choices too.
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | choices | {"nullable": True}


def _bounds(kind: types.Type, schema_type: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for bound, words in _BOUNDS.items():
        value = getattr(kind, bound, None)
        if value is not None:
            found |= {word: value if fixed is None else fixed for word, fixed in words.items()}
    for bound, word in (("min_length", "min"), ("max_length", "max")):
        value = getattr(kind, bound, None)
        if value is not None:
            found[word + _LENGTHS[schema_type]] = value
    return found


def _documentation(cls: type) -> str:
    """What the author wrote about the class itself; not about a base class."""
    return inspect.cleandoc(cls.__dict__.get("__doc__") or "")
