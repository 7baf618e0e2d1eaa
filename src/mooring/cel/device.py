"""Device selectors: the expressions of DeviceClasses and ResourceClaims about a device.

The one variable is `device`: its driver, its attributes and capacities by domain and name, and whether it can be
allocated several times. A name without a domain is in the driver's; a domain that the device does not have is an
empty map, so that a selector can test whether a name is in it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from mooring.cel import types
from mooring.cel.budget import Check
from mooring.cel.declarations import function, member
from mooring.cel.environment import Environment, Program
from mooring.cel.errors import CelError, CompileError
from mooring.cel.library import KUBERNETES
from mooring.cel.library.quantity import QUANTITY, Quantity
from mooring.cel.library.semver import Semver, parsed_version
from mooring.cel.macros import BINDINGS, MACROS
from mooring.cel.values import WithDefault, is_list, same, type_of

AttributeValue = bool | int | str | Semver | None
"""An attribute's value: a version is an `AttributeVersion`; None is an attribute with no value that we know."""

COST_LIMIT = 1_000_000
"""What evaluating a selector for one device may cost."""

LONGEST_EXPRESSION = 10 * 1024
"""In bytes. The API server refuses longer ones."""

_DEVICE = "kubernetes.DRADevice"
_MOST_VALUES = 48
"""Values that a list can have for `includes`."""
_LARGEST_VALUE = 64
"""Characters of a driver's name, a domain, a name or a value, and entries of a map: the API server admits no more."""


def _includes(target: Any, item: Any) -> bool:
    """Whether a list has the item; any other value only includes what it equals."""
    if not is_list(target):
        return same(target, item) is True
    for at, each in enumerate(target):
        if at >= _MOST_VALUES:
            raise CelError(f"'includes' function cannot be applied to lists longer than {_MOST_VALUES} values")
        if same(each, item) is True:
            return True
    return False


_INCLUDES = function("includes", member("dra_includes_dyn_dyn", (types.DYN, types.DYN), types.BOOL, _includes))
"""Made for attributes that are lists. Stored expressions know it whether DRAListTypeAttributes is on or off."""

ENVIRONMENT = Environment(
    {"device": types.struct(_DEVICE)},
    {
        _DEVICE: {
            "driver": types.STRING,
            "attributes": types.map_of(types.STRING, types.map_of(types.STRING, types.ANY)),
            "capacity": types.map_of(types.STRING, types.map_of(types.STRING, QUANTITY)),
            "allowMultipleAllocations": types.BOOL,
        }
    },
    functions={**KUBERNETES, _INCLUDES.name: _INCLUDES},
    macros={**MACROS, **BINDINGS},
    largest_value=_LARGEST_VALUE,
    cost_limit=COST_LIMIT,
)
_CACHED_CHARACTERS = 256 * 1024
"""Of expressions. A compiled one takes about three hundred times the memory of its text."""


class AttributeVersion(str):
    """An attribute's version as the ResourceSlice has it: text that should be a semantic version."""

    __slots__ = ()


class DeviceInput:
    """A device as selectors see it. The view is made for the first selector, and kept."""

    __slots__ = ("_view", "allow_multiple_allocations", "attributes", "capacity", "driver")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, AttributeValue],
        capacity: Mapping[str, str],
        allow_multiple_allocations: bool | None = None,
    ) -> None:
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple_allocations = allow_multiple_allocations
        self._view: dict[str, Any] | None = None

    @property
    def view(self) -> dict[str, Any]:
        """The value of `device`; raises CelError for an attribute that cannot be read."""
        if self._view is None:
            attributes = {name: _attribute(name, value) for name, value in self.attributes.items()}
            capacity = {name: Quantity.parsed(text) for name, text in self.capacity.items()}
            self._view = {
                "driver": self.driver,
                "allowMultipleAllocations": bool(self.allow_multiple_allocations),
                "attributes": self._by_domain(attributes),
                "capacity": self._by_domain(capacity),
            }
        return self._view

    def _by_domain(self, values: Mapping[str, Any]) -> WithDefault:
        domains: dict[str, dict[str, Any]] = {}
        for qualified, value in values.items():
            domain, slash, name = qualified.partition("/")
            if not slash:
                domain, name = self.driver, qualified
            domains.setdefault(domain, {})[name] = value
        return WithDefault(domains, {})


def _attribute(name: str, value: AttributeValue) -> Any:
    if value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    if not isinstance(value, AttributeVersion):
        return value
    try:
        return parsed_version(value)
    except ValueError as problem:
        raise CelError(f"attribute {name}: parse semantic version: {problem}") from None


class CompiledSelector:
    """A compiled selector, or the reason why there is none."""

    __slots__ = ("error", "expression", "program")

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.error: str | None = None
        self.program: Program | None = None
        if (length := len(expression.encode("utf-8", "replace"))) > LONGEST_EXPRESSION:
            self.error = f"expression is too long: {length} bytes, at most {LONGEST_EXPRESSION}"
            return
        try:
            program = ENVIRONMENT.compile(expression)
        except CompileError as problem:
            text = str(problem)
            self.error = text if text.startswith("program instantiation") else f"compilation failed: {text}"
            return
        if program.type not in (types.BOOL, types.ANY):
            self.error = f"must evaluate to bool or the unknown type, not {program.type}"
            return
        self.program = program

    def matches(self, device: DeviceInput, check: Check | None = None) -> bool:
        """Whether the device is one; raises CelError where the expression has no value for it.

        `check` is called before and now and then during the evaluation, and raises what ends it.
        """
        if self.program is None:
            raise CelError(self.error or "")
        result = self.program.run([device.view], check)
        if result is True or result is False:
            return bool(result)
        raise _not_a_bool(result)


_NO_BOOL = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "duration": "type conversion error from 'Duration' to 'bool'",
    "timestamp": "type conversion error from 'Timestamp' to 'bool'",
}


def _not_a_bool(result: Any) -> CelError:
    of = type_of(result)
    short = of.name.rpartition(".")[2]
    reason = _NO_BOOL.get(of.kind, f"type conversion error from '{short}' to 'bool'")
    return CelError(f"CEL result of type {of.name} could not be converted to bool: {reason}")


class _Selectors:
    """The selectors used last, within a bound of memory."""

    def __init__(self) -> None:
        self._selectors: OrderedDict[str, CompiledSelector] = OrderedDict()
        self._characters = 0

    def get(self, expression: str) -> CompiledSelector:
        found = self._selectors.get(expression)
        if found is not None:
            self._selectors.move_to_end(expression)
            return found
        made = CompiledSelector(expression)
        if len(expression) <= LONGEST_EXPRESSION:
            self._selectors[expression] = made
            self._characters += len(expression)
        while self._characters > _CACHED_CHARACTERS:
            oldest, _ = self._selectors.popitem(last=False)
            self._characters -= len(oldest)
        return made


_SELECTORS = _Selectors()


def compile_selector(expression: str) -> CompiledSelector:
    """The selector of the expression. Never raises: `error` is what is wrong with the text."""
    return _SELECTORS.get(expression)
