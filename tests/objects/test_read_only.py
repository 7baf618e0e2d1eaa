"""No object of the cluster can be changed: found from the types of all fields, not listed by hand."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import mooring.objects
from mooring.objects.core import PodSpec
from mooring.objects.meta import CustomResource, KubeObject, ResourcePart
from mooring.objects.read_only import ReadOnlyDict, ReadOnlyError, ReadOnlyList, read_only
from mooring.objects.wire import Wire

for _module in pkgutil.iter_modules(mooring.objects.__path__):
    importlib.import_module(f"mooring.objects.{_module.name}")


def subclasses(cls: Any) -> Iterator[type[msgspec.Struct]]:
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


STRUCTS = sorted(
    {
        each
        for base in (Wire, KubeObject)
        for each in subclasses(base)
        if each.__module__.startswith("mooring.objects.")
    },
    key=lambda each: each.__name__,
)
CHANGEABLE = (msgspec.inspect.ListType, msgspec.inspect.SetType, msgspec.inspect.ByteArrayType)
MAPPINGS = (msgspec.inspect.DictType, msgspec.inspect.AnyType)


def fields() -> Iterator[tuple[type[msgspec.Struct], str, Any]]:
    for cls in STRUCTS:
        for field in msgspec.inspect.type_info(cls).fields:  # type: ignore[attr-defined]
            kinds = field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)
            for kind in kinds:
                yield cls, field.name, kind


@pytest.mark.parametrize(
    ("cls", "name", "kind"), list(fields()), ids=lambda value: getattr(value, "__name__", str(value)[:40])
)
def test_no_field_holds_what_can_be_changed(cls, name, kind):
    assert not isinstance(kind, CHANGEABLE), "declare a tuple or a frozenset"
    if isinstance(kind, MAPPINGS):
        found = getattr(cls(**{name: {"key": "value"}}), name)
        assert type(found) is ReadOnlyDict
        assert type(getattr(msgspec.structs.replace(cls(), **{name: {}}), name)) is ReadOnlyDict


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_no_attribute_can_be_set(cls):
    required = {field.name: "x" for field in msgspec.structs.fields(cls) if field.required}
    made = cls(**required)
    for name in (*cls.__struct_fields__, "another"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)
        with pytest.raises(AttributeError):
            delattr(made, name)


class Part(ResourcePart):
    used: dict[str, int] = {}
    names: list[str] = []
    anything: Any = None


class Own(CustomResource, group="example.com", version="v1", plural="owns"):
    spec: Part = msgspec.field(default_factory=Part)
    rest: dict[str, list[int]] = {}


def test_objects_of_a_plugins_own_kind_are_read_only():
    document = {"spec": {"used": {"a": 1}, "names": ["x"], "anything": [{"deep": [1]}]}, "rest": {"a": [1]}}
    made = msgspec.convert(document, Own)
    assert (made.spec.used, made.spec.names, made.rest) == ({"a": 1}, ["x"], {"a": [1]})
    for write in (
        lambda: made.spec.used.update(a=2),
        lambda: made.spec.names.append("y"),
        lambda: made.spec.anything[0]["deep"].clear(),
        lambda: made.rest["a"].append(2),
        lambda: made.rest.setdefault("b", []),
    ):
        with pytest.raises(ReadOnlyError):
            write()
    assert msgspec.to_builtins(made)["spec"] == document["spec"]


def test_volumes_of_a_pod_are_read_only_and_written_as_they_were():
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = msgspec.convert({"volumes": volumes}, PodSpec)
    before = msgspec.json.encode(spec)
    with pytest.raises(ReadOnlyError):
        spec.volumes[0]["persistentVolumeClaim"]["claimName"] = "other"
    assert msgspec.json.encode(spec) == before
    assert list(msgspec.to_builtins(spec)["volumes"]) == volumes


@pytest.mark.parametrize("value", [ReadOnlyDict(a=1), ReadOnlyList([1]), read_only({"a": [{"b": 1}]})])
def test_copies_and_pickles_are_equal(value):
    assert value == copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value))
    changed = value.copy()
    changed.clear()
    assert value != changed
