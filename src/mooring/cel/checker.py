"""Types: every node gets one, every call its overloads; what does not fit is an issue.

Type variables of generic overloads and of empty literals are solved by unification while the tree is walked. An error
gets the error type, which fits everywhere, so that one mistake is one issue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.cel.declarations import Function, Overload
from mooring.cel.errors import Issue
from mooring.cel.syntax import (
    Broken,
    Call,
    Comprehension,
    Expression,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    qualified_name,
)
from mooring.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    STRING,
    Type,
    TypeBindings,
    list_of,
    map_of,
    most_general,
    optional_of,
    type_of,
    variable,
    without_optional,
)
from mooring.cel.values import type_of as type_of_value


class Scope:
    """Variables by name, inner before outer."""

    def __init__(self, names: Mapping[str, Type], outer: Scope | None = None) -> None:
        self.names = dict(names)
        self.outer = outer

    def find(self, name: str) -> Type | None:
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.names.get(name)) is not None:
                return found
            scope = scope.outer
        return None


class Checker:
    """Checks one expression."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Mapping[str, Function],
        type_names: Mapping[str, Type],
        structs: Mapping[str, Mapping[str, Type]],
        issues: list[Issue],
    ) -> None:
        self._scope = Scope(variables)
        self._functions = functions
        self._type_names = type_names
        self._structs = structs
        self._issues = issues
        self._bindings = TypeBindings()
        self._fresh = 0
        self._nodes: list[Expression] = []

    def check(self, node: Expression) -> Type:
        """Types for the whole tree; the type of the expression."""
        self._check(node)
        for each in self._nodes:
            each.type = self._bindings.resolved(each.type, free_is_dyn=True)
        return node.type

    def _report(self, offset: int, message: str) -> None:
        self._issues.append(Issue(offset, message))

    def _typed(self, node: Expression, of: Type) -> None:
        node.type = of
        self._nodes.append(node)

    def _unknown_type(self) -> Type:
        self._fresh += 1
        return variable(f"_var{self._fresh - 1}")

    def _assignable(self, one: Type, other: Type) -> bool:
        found = self._bindings.assigned(one, other)
        if found is not None:
            self._bindings = found
        return found is not None

    def _check(self, node: Expression) -> None:
        match node:
            case Literal():
                self._typed(node, type_of_value(node.value))
            case Ident():
                self._check_ident(node)
            case Select():
                self._check_select(node)
            case Call():
                self._check_call(node)
            case ListLiteral():
                self._check_list(node)
            case MapLiteral():
                self._check_map(node)
            case StructLiteral():
                self._check_struct(node)
            case Comprehension():
                self._check_comprehension(node)
            case Broken():
                self._typed(node, ERROR)

    def _resolve(self, name: str) -> tuple[str, Type, Any] | None:
        """The variable or type of that name: its name without a leading dot, its type, and a type's value."""
        plain = name.removeprefix(".")
        if (found := self._scope.find(plain)) is not None:
            return plain, found, None
        if (named := self._type_names.get(plain)) is not None:
            return plain, type_of(named), named
        return None

    def _undeclared(self, node: Expression, name: str) -> None:
        self._report(node.offset, f"undeclared reference to '{name}' (in container '')")
        self._typed(node, ERROR)

    def _check_ident(self, node: Ident) -> None:
        found = self._resolve(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        node.name, of, node.constant = found
        self._typed(node, of)

    def _check_select(self, node: Select) -> None:
        name = qualified_name(node)
        if name is not None and (found := self._resolve(name)) is not None and found[2] is not None:
            node.constant = found[2]
            self._typed(node, found[1])
            return
        result = self._selected(node, node.operand, node.field_name, optional=False)
        self._typed(node, self._bindings.resolved(BOOL if node.test_only else result))

    def _selected(self, node: Expression, operand: Expression, field_name: str, *, optional: bool) -> Type:
        self._check(operand)
        target, was_optional = without_optional(self._bindings.resolved(operand.type))
        result = ERROR
        if target.kind == "map":
            result = target.parameters[1]
        elif target.kind == "struct":
            found = self._field(node.offset, target.name, field_name)
            result = ERROR if found is None else found
        elif target.kind == "variable":
            self._assignable(DYN, target)
            result = DYN
        else:
            if not target.is_dyn and target.kind != "error":
                self._report(node.offset, f"type '{target.shown}' does not support field selection")
            result = DYN
        return optional_of(result) if was_optional or optional else result

    def _field(self, offset: int, struct: str, name: str) -> Type | None:
        fields = self._structs.get(struct)
        if fields is None:
            self._report(offset, f"unexpected failed resolution of '{struct}'")
            return None
        if name not in fields:
            self._report(offset, f"undefined field '{name}'")
        return fields.get(name)

    def _check_call(self, node: Call) -> None:
        if node.function == "_?._":
            operand, field = node.args
            assert isinstance(field, Literal)
            result = self._selected(node, operand, field.value, optional=True)
            node.overloads = (OPTIONAL_SELECT,)
            self._typed(node, self._bindings.resolved(result))
            return
        for each in node.args:
            self._check(each)
        if node.target is not None:
            prefix = qualified_name(node.target)
            if prefix is not None and (found := self._function(f"{prefix}.{node.function}")) is not None:
                node.target, node.function = None, found.name
                self._choose(node, found)
                return
            self._check(node.target)
        function = self._function(node.function)
        if function is None:
            self._undeclared(node, node.function)
            return
        node.function = function.name
        self._choose(node, function)

    def _function(self, name: str) -> Function | None:
        return self._functions.get(name.removeprefix("."))

    def _choose(self, node: Call, function: Function) -> None:
        """All overloads that the arguments fit; the result has the type of the first, unless another disagrees."""
        operands = [*([node.target] if node.target else []), *node.args]
        types = [each.type for each in operands]
        if function.name in ("_&&_", "_||_"):
            self._check_logic(node, function)
            return
        chosen: list[Overload] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != (node.target is not None):
                continue
            wanted, gives = self._instance(overload)
            found = self._bindings.all_assigned(types, wanted)
            if found is None:
                continue
            self._bindings = found
            chosen.append(overload)
            gives = self._bindings.resolved(gives)
            if result is None:
                result = gives
            elif not result.is_dyn and gives != result:
                result = DYN
        if result is None:
            self._report(node.offset, self._no_overload(function.name, types, is_member=node.target is not None))
            self._typed(node, ERROR)
            return
        node.overloads = tuple(chosen)
        self._typed(node, result)

    def _check_logic(self, node: Call, function: Function) -> None:
        fine = True
        for each in node.args:
            if not self._assignable(each.type, BOOL):
                self._report(each.offset, f"expected type 'bool' but found '{each.type.shown}'")
                fine = False
        node.overloads = function.overloads
        self._typed(node, BOOL if fine else ERROR)

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """The overload's types with type variables of its own."""
        names = overload.type_variables
        if not names:
            return overload.args, overload.result
        fresh = TypeBindings({name: self._unknown_type() for name in sorted(names)})
        return tuple(fresh.resolved(each) for each in overload.args), fresh.resolved(overload.result)

    def _no_overload(self, name: str, types: list[Type], *, is_member: bool) -> str:
        shown = [self._bindings.resolved(each, free_is_dyn=True).shown for each in types]
        target = f"{shown.pop(0)}." if is_member else ""
        return f"found no matching overload for '{name}' applied to '{target}({', '.join(shown)})'"

    def _joined(self, previous: Type | None, current: Type) -> Type:
        """The one type of a literal's elements; dyn where they differ, which validation then reports."""
        if previous is None:
            return current
        return most_general(previous, current) if self._assignable(previous, current) else DYN

    def _mismatch(self, node: Expression, expected: Type, found: Type) -> None:
        self._report(node.offset, f"expected type '{expected.shown}' but found '{found.shown}'")

    def _unwrapped(self, node: Expression) -> Type:
        """The type behind the `?` of an optional element."""
        held, was_optional = without_optional(node.type)
        if not was_optional and not held.is_dyn:
            self._mismatch(node, optional_of(held), held)
        return held

    def _check_list(self, node: ListLiteral) -> None:
        elements: Type | None = None
        for position, each in enumerate(node.elements):
            self._check(each)
            of = self._unwrapped(each) if position in node.optionals else each.type
            elements = self._joined(elements, of)
        self._typed(node, list_of(self._unknown_type() if elements is None else elements))

    def _check_map(self, node: MapLiteral) -> None:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            self._check(entry.key)
            keys = self._joined(keys, entry.key.type)
            self._check(entry.value)
            of = self._unwrapped(entry.value) if entry.optional else entry.value.type
            values = self._joined(values, of)
        if keys is None or values is None:
            keys, values = self._unknown_type(), self._unknown_type()
        self._typed(node, map_of(keys, values))

    def _check_struct(self, node: StructLiteral) -> None:
        found = self._resolve(node.type_name)
        if found is None:
            self._undeclared(node, node.type_name)
            return
        node.type_name, of, _ = found
        result = ERROR
        if of.kind != "type":
            self._report(node.offset, f"'{of.name}' is not a type")
        elif of.parameters[0].kind != "struct":
            self._report(node.offset, f"'{of.parameters[0].name}' is not a message type")
        else:
            result = of.parameters[0]
        self._typed(node, result)
        for entry in node.entries:
            self._check(entry.value)
            wanted = self._field(entry.offset, node.type_name, entry.key) or ERROR
            given = self._unwrapped(entry.value) if entry.optional else entry.value.type
            if not self._assignable(wanted, given):
                self._report(
                    entry.offset,
                    f"expected type of field '{entry.key}' is '{wanted.shown}' but provided type is '{given.shown}'",
                )

    def _check_comprehension(self, node: Comprehension) -> None:
        self._check(node.range)
        self._check(node.initial)
        over = self._bindings.resolved(node.range.type)
        accumulated = node.initial.type
        outer = self._scope
        self._scope = Scope({node.accumulator: accumulated}, outer)
        first, second = self._variable_types(node, over)
        loop = {node.variable: first}
        if node.second_variable:
            loop[node.second_variable] = second
        self._scope = Scope(loop, self._scope)
        self._check(node.condition)
        self._assert_type(node.condition, BOOL)
        self._check(node.step)
        self._assert_type(node.step, accumulated)
        self._scope = self._scope.outer or outer
        self._check(node.result)
        self._scope = outer
        self._typed(node, self._bindings.resolved(node.result.type))

    def _variable_types(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        if over.kind == "list":
            return (INT, over.parameters[0]) if node.second_variable else (over.parameters[0], ERROR)
        if over.kind == "map":
            return over.parameters[0], over.parameters[1]
        if over.kind in ("dyn", "error", "variable"):
            self._assignable(DYN, over)
            return DYN, DYN
        self._report(
            node.range.offset,
            f"expression of type '{over.shown}' cannot be range of a comprehension (must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def _assert_type(self, node: Expression, of: Type) -> None:
        if not self._assignable(of, node.type):
            self._mismatch(node, of, node.type)


OPTIONAL_SELECT = Overload("select_optional_field", (DYN, STRING), optional_of(variable("V")))
