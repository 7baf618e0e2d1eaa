"""Reading containers as closures: fields, keys, positions, and what is optionally there.

Where the checker knows that a container is a map with text keys, it is read like a Python dict; everything else is
looked at when it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.cel.errors import CelError
from mooring.cel.operators import look_up, look_up_if_present
from mooring.cel.types import Type
from mooring.cel.values import NONE, Optional

Frame = list[Any]
Evaluate = Callable[[Frame], Any]


def has_text_keys(of: Type) -> bool:
    return of.kind == "struct" or (of.kind == "map" and of.parameters[0].kind == "string")


def path_of(slot: int, keys: list[str]) -> Evaluate:
    if len(keys) == 1:
        (only,) = keys
        return lambda frame: _found(frame[slot], only)
    if len(keys) == 2:
        one, two = keys

        def two_steps(frame: Frame) -> Any:
            try:
                return frame[slot][one][two]
            except KeyError as missing:
                raise CelError(f"no such key: {missing.args[0]}") from None

        return two_steps
    one, two, three, *more = keys

    def steps(frame: Frame) -> Any:
        try:
            value = frame[slot][one][two][three]
            for key in more:
                value = value[key]
            return value
        except KeyError as missing:
            raise CelError(f"no such key: {missing.args[0]}") from None

    return steps


def _found(mapping: Any, key: str) -> Any:
    try:
        return mapping[key]
    except KeyError:
        raise CelError(f"no such key: {key}") from None


def text_key(operand: Evaluate, key: str) -> Evaluate:
    return lambda frame: _found(operand(frame), key)


def element_of(container: Evaluate, key: Evaluate) -> Evaluate:
    def element(frame: Frame) -> Any:
        return qualified(container(frame), key(frame))

    return element


def qualified(container: Any, key: Any) -> Any:
    """`container[key]`; of an optional container, an optional element."""
    if type(container) is not Optional:
        return look_up(container, key)
    return optionally_qualified(container, key)


def optionally_qualified(container: Any, key: Any) -> Optional:
    """`container[?key]`."""
    if type(container) is Optional:
        if not container.present:
            return NONE
        container = container.value
    value, present = look_up_if_present(container, key)
    return Optional(value) if present else NONE


def optional_element(container: Evaluate, key: Evaluate) -> Evaluate:
    return lambda frame: optionally_qualified(container(frame), key(frame))


def presence(operand: Evaluate, name: str) -> Evaluate:
    def is_present(frame: Frame) -> bool:
        container = operand(frame)
        if type(container) is Optional:
            return optionally_qualified(container, name).present
        return look_up_if_present(container, name)[1]

    return is_present


def alternative(first: Evaluate, second: Evaluate, *, wrapped: bool) -> Evaluate:
    def alternative(frame: Frame) -> Any:
        found = first(frame)
        if type(found) is not Optional:
            return found
        if not found.present:
            return second(frame)
        return found if wrapped else found.value

    return alternative
