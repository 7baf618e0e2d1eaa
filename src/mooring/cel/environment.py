"""The variables, types and functions of expressions, and the way from text to value.

An environment is variables with their types, the fields of struct types, and functions. Compiling gives a `Program` or
a `CompileError` with every issue at once; a program evaluates to CEL values as Python has them (see `values`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mooring.cel import types
from mooring.cel.budget import Check, Meter, on_meter
from mooring.cel.checker import Checker
from mooring.cel.declarations import Function
from mooring.cel.errors import CelError, CompileError, Issue, Source
from mooring.cel.library import KUBERNETES
from mooring.cel.library.addresses import CIDR_TYPE, IP_TYPE
from mooring.cel.macros import MACROS, Macros
from mooring.cel.metered import MeteredPlanner
from mooring.cel.parser import parse
from mooring.cel.plan import FIRST_VARIABLE, Evaluate, Planner
from mooring.cel.syntax import Expression
from mooring.cel.types import Type
from mooring.cel.unmetered import is_cheap
from mooring.cel.validation import validated

_TYPE_NAMES: dict[str, Type] = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "int": types.INT,
    "string": types.STRING,
    "uint": types.UINT,
    "null_type": types.NULL,
    "type": types.TYPE,
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "optional_type": types.opaque("optional_type"),
    "net.IP": IP_TYPE,
    "net.CIDR": CIDR_TYPE,
}


_ROOM = 12_000
"""Calls in each other. An expression may be nested 250 deep, and each level takes several of them to parse, check and
plan: more than Python allows by default. The parser bounds the depth, and Python's own calls take no machine stack."""


@contextmanager
def room_for_deep_expressions() -> Iterator[None]:
    """Raises Python's limit for the block, if it is lower."""
    before = sys.getrecursionlimit()
    if before >= _ROOM:
        yield
        return
    sys.setrecursionlimit(_ROOM)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Program:
    """An expression that can be evaluated.

    Where it cannot reach the limit, nothing is counted; else every evaluation is metered and ends at the limit.
    """

    def __init__(self, expression: str, tree: Expression, names: list[str], build: _Build, limit: int | None) -> None:
        self.expression = expression
        self.type = tree.type
        self.variables = names
        self._tree, self._build, self._limit = tree, build, limit
        self._plain, slots = build.plain(tree)
        self._rest = [None] * (slots - FIRST_VARIABLE - len(names))
        self._metered: tuple[Evaluate, int] | None = None
        self.is_metered = limit is not None and (build.largest is None or not is_cheap(tree, build.largest, limit))

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value for these variables; raises CelError where there is none."""
        return self.run([values[name] for name in self.variables])

    def run(self, values: list[Any], check: Check | None = None) -> Any:
        """As `evaluate`, with the values in the order of `variables`. `check` raises when the time is over."""
        if check is not None:
            check()
        if not self.is_metered:
            try:
                return self._plain([None, *values, *self._rest])
            except CelError:
                pass  # another part may decide all the same: the meter's plan is the careful one
            except RecursionError:
                pass  # and has room
        return self.measure(values, Meter(self._limit, check))

    def measure(self, values: list[Any], meter: Meter) -> Any:
        """As `run`, counting on the meter."""
        with room_for_deep_expressions():
            if self._metered is None:
                self._metered = self._build.metered(self._tree)
            evaluate, slots = self._metered
            frame = [meter, *values]
            frame += [None] * (slots - len(frame))
            return on_meter(meter, evaluate, frame)


class _Build:
    """What programs of one environment are built with."""

    def __init__(self, names: list[str], functions: Mapping[str, Function], largest: int | None) -> None:
        self._names, self._functions, self.largest = names, functions, largest

    def plain(self, tree: Expression) -> tuple[Evaluate, int]:
        planner = Planner(self._names, self._functions)
        return planner.plan(tree), planner.slots

    def metered(self, tree: Expression) -> tuple[Evaluate, int]:
        planner = MeteredPlanner(self._names, self._functions)
        return planner.plan(tree), planner.slots


class Environment:
    """Declares variables; compiles expressions about them.

    `largest_value` is how many characters or entries a variable, or anything in it, can have; None where that is
    unknown, and then every evaluation under a limit is metered.
    """

    def __init__(
        self,
        variables: Mapping[str, Type],
        structs: Mapping[str, Mapping[str, Type]] | None = None,
        functions: Mapping[str, Function] = KUBERNETES,
        macros: Macros = MACROS,
        largest_value: int | None = None,
        cost_limit: int | None = None,
    ) -> None:
        self._variables = dict(variables)
        self._structs = dict(structs or {})
        self._functions = functions
        self._macros = macros
        self._limit = cost_limit
        self._build = _Build(list(variables), functions, largest_value)

    def compile(self, expression: str) -> Program:
        """The program; raises CompileError with the issues as cel-go shows them."""
        with room_for_deep_expressions():
            return self._compiled(expression)

    def _compiled(self, expression: str) -> Program:
        issues: list[Issue] = []
        tree = parse(expression, issues, self._macros)
        if not issues:
            Checker(self._variables, self._functions, _TYPE_NAMES, self._structs, issues).check(tree)
        if not issues:
            issues += validated(tree)
        if issues:
            raise CompileError(Source(expression).shown(issues))
        return self._program(expression, tree)

    def _program(self, expression: str, tree: Expression) -> Program:
        try:
            return Program(expression, tree, list(self._variables), self._build, self._limit)
        except CelError as problem:
            raise CompileError(f"program instantiation failed: {problem}") from None
