"""Every write that a plugin can try on what it is given: found from the objects themselves, not listed by hand."""

from __future__ import annotations

import enum
import inspect
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

MOST_DEPTH = 7
FEW = 2
"""So many items of a container are followed: all are of one type."""
UNCHANGEABLE = (
    *(str, bytes, int, float, complex, type(None), frozenset, enum.Enum, type, types.ModuleType),
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType),
)

Write = tuple[str, Callable[[], object]]


class Writes:
    """Tries them. `done` has those that succeeded; `refused` counts the others."""

    def __init__(self, arguments: Mapping[str, Any], own: Sequence[object] = ()) -> None:
        """`arguments`: for methods that read, by the annotation of the parameter. `own`: what the plugin may change."""
        self._arguments = arguments
        self._seen = {id(each) for each in own}
        self._kept: list[object] = list(own)
        """So that no other object gets the id of one that was seen."""
        self.done: set[str] = set()
        self.refused = 0

    def on(self, value: Any, path: str, depth: int = 0) -> None:
        """On the value, and on all that it leads to: attributes, items, results of methods that read."""
        if depth > MOST_DEPTH or isinstance(value, UNCHANGEABLE) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        for name, write in _writes(value):
            try:
                write()
            except Exception:
                self.refused += 1
            else:
                self.done.add(f"{path} ({type(value).__name__}): {name}")
        for step, found in _items(value):
            self.on(found, f"{path}{step}", depth + 1)
        for step, read in self._reads(value):
            try:
                found, again = read(), read()
            except Exception:
                continue
            if found is again or _share_memory(found, again) or not isinstance(found, (dict, list, set, np.ndarray)):
                self.on(found, f"{path}{step}", depth + 1)
            else:  # a copy for the reader: what is in it is shared again
                for item, each in _items(found):
                    self.on(each, f"{path}{step}{item}", depth + 1)

    def _reads(self, value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
        if isinstance(value, (np.ndarray, Mapping, Sequence, Set)):
            return
        for name in _names(value):
            member = inspect.getattr_static(type(value), name, None)
            try:
                found = getattr(value, name)
            except Exception:
                continue
            if not inspect.isroutine(found):
                yield f".{name}", lambda name=name: getattr(value, name)  # type: ignore[misc]
            elif not inspect.iscoroutinefunction(found) and not inspect.isbuiltin(member):
                yield from self._calls(name, found)

    def _calls(self, name: str, method: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
        try:
            signature = inspect.signature(method)
        except ValueError:
            return
        if signature.return_annotation in (None, "None", inspect.Signature.empty):
            return
        required = [each for each in signature.parameters.values() if each.default is each.empty]
        if all(str(each.annotation) in self._arguments for each in required):
            given = [self._arguments[str(each.annotation)] for each in required]
            yield f".{name}()", lambda: method(*given)


def _names(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from (("[]", each) for each in list(value.values())[:FEW])
    elif isinstance(value, (Sequence, Set)):
        yield from (("[]", each) for each in list(value)[:FEW])


def _share_memory(one: Any, other: Any) -> bool:
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.shares_memory(one, other)


def _writes(value: Any) -> Iterator[Write]:
    if isinstance(value, np.ndarray):
        yield "[:] = 0", lambda: value.fill(0)
        return
    if isinstance(value, Mapping):
        key = next(iter(value), "written")
        yield "[key] = …", lambda: operator.setitem(value, key, "written")  # type: ignore[call-overload]
        yield "del [key]", lambda: operator.delitem(value, key)  # type: ignore[call-overload]
        yield "|=", lambda: value.__ior__({"written": "written"})  # type: ignore[attr-defined]
        calls: dict[str, tuple[object, ...]] = {"pop": (key,), "setdefault": ("new", 1), "update": ({"new": 1},)}
    else:
        yield "[0] = …", lambda: operator.setitem(value, 0, "written")
        yield "+=", lambda: value.__iadd__(["written"])
        calls = {"append": (1,), "extend": ([1],), "insert": (0, 1), "add": (1,), "remove": (1,), "pop": ()}
    calls |= {"popitem": (), "clear": (), "reverse": (), "sort": ()}
    for name, arguments in calls.items():
        if isinstance(value, (Mapping, Sequence, Set)) and hasattr(value, name):
            yield name, lambda name=name, arguments=arguments: getattr(value, name)(*arguments)  # type: ignore[misc]
    for name in [*_names(value), "written"]:
        yield f".{name} = …", lambda name=name: setattr(value, name, "written")  # type: ignore[misc]
        yield f"del .{name}", lambda name=name: delattr(value, name)  # type: ignore[misc]
