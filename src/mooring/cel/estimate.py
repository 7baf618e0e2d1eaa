"""The least and the most that evaluating an expression can cost, known before any value is.

Sizes of variables are hints of the environment (the path of a value to the most it can hold); sizes of everything else
follow from literals and from what functions do. Loops multiply: what is unknown makes them unbounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.cel.bounds import MOST, ONE, UNKNOWN, ZERO, Bounds, exactly
from mooring.cel.call_estimates import (
    BY_FUNCTION,
    BY_OVERLOAD,
    LIST,
    MAP,
    STRUCT,
    Estimate,
    Given,
    Operand,
    standard_estimate,
)
from mooring.cel.macros import ACCUMULATOR
from mooring.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from mooring.cel.types import Type

Path = tuple[str, ...]
SizeHints = Callable[[Path], Bounds | None]
"""The size of a value, by the way that leads to it: ("device", "attributes", "@values")."""
_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


@dataclass(frozen=True)
class _Entries:
    """How big keys and values of a container are."""

    of_list: bool
    key: Bounds
    value: Bounds

    def joined(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.of_list, self.key.joined(other.key), self.value.joined(other.value))


@dataclass(frozen=True)
class _Local:
    """What is known about a variable of a loop."""

    path: Path
    size: Bounds | None
    entries: _Entries | None


def estimated(tree: Node, hints: SizeHints) -> Bounds:
    """The cost of a checked expression."""
    return _Estimator(hints).cost(tree)


class _Estimator:
    def __init__(self, hints: SizeHints) -> None:
        self._hints = hints
        self._locals: dict[str, list[_Local]] = {}
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Bounds] = {}
        self._entries: dict[int, _Entries] = {}

    def cost(self, node: Node) -> Bounds:
        match node:
            case Ident():
                local = self._local(node.name)
                self._paths[id(node)] = (node.name,) if local is None else local.path
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case StructLiteral():
                return self._sum([each.value for each in node.entries]).plus(exactly(STRUCT))
            case Comprehension():
                return self._bind(node) if _is_bind(node) else self._loop(node)
        return ZERO

    def _sum(self, nodes: list[Node]) -> Bounds:
        total = ZERO
        for each in nodes:
            total = total.plus(self.cost(each))
        return total

    def _local(self, name: str) -> _Local | None:
        found = self._locals.get(name)
        return found[-1] if found else None

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.path
        return self._paths.get(id(node), ())

    # Sizes

    def _size(self, node: Node) -> Bounds | None:
        if (known := self._sizes.get(id(node))) is not None:
            return known
        if (written := _written_size(node)) is not None:
            return exactly(written)
        path = self._path(node)
        if path and (hinted := self._hints(path)) is not None:
            self._sizes[id(node)] = hinted
            return hinted
        if _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.size
        return None

    def _known(self, node: Node) -> Bounds:
        size = self._size(node)
        return UNKNOWN if size is None else size

    def _entry_sizes(self, node: Node) -> _Entries | None:
        if (known := self._entries.get(id(node))) is not None:
            return known
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.entries
        return None

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        elements = self._hints((*path, "@items")) if path else None
        return Operand(node, node.type, self._size(node), elements)

    # Nodes

    def _select(self, node: Select) -> Bounds:
        total = self.cost(node.operand)
        if node.test_only:
            return total  # asking whether something is there is free
        if node.operand.type.kind in ("map", "struct", "variable"):
            total = total.plus(ONE)
        self._paths[id(node)] = (*self._path(node.operand), node.field_name)
        return total

    def _list(self, node: ListLiteral) -> Bounds:
        total = self._sum(node.elements)
        size = Bounds(MOST if node.elements else 0, 0)
        for each in node.elements:
            size = size.joined(self._known(each))
        self._entries[id(node)] = _Entries(True, ONE, size)
        return total.plus(exactly(LIST))

    def _map(self, node: MapLiteral) -> Bounds:
        total = ZERO
        keys = values = Bounds(MOST if node.entries else 0, 0)
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys, values = keys.joined(self._known(entry.key)), values.joined(self._known(entry.value))
        self._entries[id(node)] = _Entries(False, keys, values)
        return total.plus(exactly(MAP))

    def _call(self, node: Call) -> Bounds:
        if node.function == "dyn":
            (value,) = node.args
            cost = self.cost(value).plus(ONE)
            self._copy(node, value)
            return cost
        costs: list[Bounds] = []
        args: list[Operand] = []
        for each in node.args:
            costs.append(self.cost(each))
            args.append(self._operand(each))
        total, target = ZERO, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        own = Bounds(MOST, 0)
        size: Bounds | None = None
        for overload in node.overloads:
            estimate = self._overload(node, overload.id, target, args, costs)
            own = own.joined(estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else size.joined(estimate.size)
            if overload.id in ("index_list", "index_map"):
                entries = self._entry_sizes(node.args[0])
                size = None if entries is None else entries.value
                step = "@items" if overload.id == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.args[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return total.plus(own)

    def _overload(
        self, node: Call, id_: str, target: Operand | None, args: list[Operand], costs: list[Bounds]
    ) -> Estimate:
        all_args = ZERO
        for each in costs:
            all_args = all_args.plus(each)
        estimate = None
        if (special := BY_OVERLOAD.get(id_)) is not None:
            estimate = special(Given(id_, target, args))
        if estimate is None and (special := BY_FUNCTION.get(node.function)) is not None:
            estimate = special(Given(id_, target, args))
        if estimate is None:
            if id_ in ("logical_and", "logical_or"):
                return Estimate(Bounds(costs[0].least, costs[0].plus(costs[1]).most))
            if id_ == "conditional":
                return self._conditional(node, args, costs)
            if id_ in ("add_string", "add_bytes", "add_list"):
                self._join_entries(node, node.args[0], node.args[1])
            estimate = standard_estimate(id_, target, args)
        return Estimate(estimate.cost.plus(all_args), estimate.size)

    def _conditional(self, node: Call, args: list[Operand], costs: list[Bounds]) -> Estimate:
        self._join_entries(node, node.args[1], node.args[2])
        return Estimate(costs[0].plus(costs[1].joined(costs[2])), args[1].bounds.joined(args[2].bounds))

    def _join_entries(self, node: Node, one: Node, other: Node) -> None:
        first = self._entry_sizes(one)
        if first is not None and (joined := first.joined(self._entry_sizes(other))) is not None:
            self._entries[id(node)] = joined

    def _copy(self, node: Node, source: Node) -> None:
        if (size := self._size(source)) is not None:
            self._sizes[id(node)] = size
        if (entries := self._entry_sizes(source)) is not None:
            self._entries[id(node)] = entries

    # Loops

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_value(self, name: str, value: Node) -> None:
        self._push(name, _Local(self._path(value), self._size(value), self._entry_sizes(value)))

    def _push_variables(self, node: Comprehension) -> None:
        entries = self._entry_sizes(node.range)
        path = self._path(node.range)
        of_list = entries.of_list if entries is not None else node.range.type.kind == "list"
        key = None if entries is None else entries.key
        value = None if entries is None else entries.value
        if node.second_variable:
            self._push(node.variable, _Local((*path, "@indices" if of_list else "@keys"), key, None))
            step = "@items" if of_list else "@values"
            self._push(node.second_variable, _Local((*path, step), value, None))
        elif of_list:
            self._push(node.variable, _Local((*path, "@items"), value, None))
        else:
            self._push(node.variable, _Local((*path, "@keys"), key, None))

    def _loop(self, node: Comprehension) -> Bounds:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push_value(node.accumulator, node.initial)
        self._push_variables(node)
        condition, step = self.cost(node.condition), self.cost(node.step)
        self._locals[node.variable].pop()
        if node.second_variable:
            self._locals[node.second_variable].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._known(node.range)
        total = total.plus(count.times(step.plus(condition)))
        if isinstance(node.initial, Literal):
            size = self._size(node.initial)
            if size is not None:
                self._sizes[id(node)] = size
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self._sizes[id(node)] = count
            if (entries := self._entry_sizes(node.step)) is not None:
                self._entries[id(node)] = entries
        return total

    def _bind(self, node: Comprehension) -> Bounds:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self._push_value(node.accumulator, node.initial)
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._copy(node, node.result)
        return total


def _is_bind(node: Comprehension) -> bool:
    return (
        isinstance(node.range, ListLiteral)
        and not node.range.elements
        and isinstance(node.condition, Literal)
        and node.condition.value is False
    )


def _written_size(node: Node) -> int | None:
    match node:
        case Literal():
            return len(node.value) if isinstance(node.value, (str, bytes)) else 1
        case ListLiteral():
            return len(node.elements)
        case MapLiteral():
            return len(node.entries)
    return None


def _is_scalar(of: Type) -> bool:
    if of.is_optional:
        return bool(of.parameters) and _is_scalar(of.parameters[0])
    return of.kind in _SCALARS
