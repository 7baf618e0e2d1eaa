"""Which expressions need no meter: those that cannot reach the limit, whatever the values of their variables are.

Two properties of the checked tree. Does a part of it make values larger than its parts (concatenate, collect,
replace, repeat)? Could all calls together, in all their loops, cost more than the limit? The second is a rough upper
bound: a call costs as much as it can for the longest text or list in sight.
"""

from __future__ import annotations

from mooring.base.regex import BadPattern, compiled
from mooring.cel.syntax import (
    Call,
    Comprehension,
    Expression,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    children,
)

_LARGEST_PATTERN = 100
"""Instructions of a regular expression whose search takes about the time that its cost stands for."""
_NUMBERS = frozenset({"int", "uint", "double", "duration", "timestamp"})
_LIGHT = frozenset(
    [
        *("_&&_", "_||_", "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "@not_strictly_false"),
        *("_[_]", "_?._", "_[?_]", "-_", "_-_", "_*_", "_/_", "_%_", "size", "type", "dyn"),
        *("bool", "int", "uint", "double", "string", "bytes", "duration", "timestamp"),
        *("contains", "startsWith", "endsWith", "lowerAscii", "upperAscii", "trim", "charAt", "substring", "includes"),
        *("quantity", "isQuantity", "isInteger", "asInteger", "asApproximateFloat", "sign", "compareTo"),
        *("isGreaterThan", "isLessThan", "add", "sub", "semver", "isSemver", "major", "minor", "patch"),
        *("ip", "isIP", "cidr", "isCIDR", "containsIP", "containsCIDR", "family", "masked", "prefixLength"),
        *("optional.of", "optional.ofNonZeroValue", "optional.none", "hasValue", "value", "or", "orValue"),
    ]
)


_LOGIC = frozenset({"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "_[_]", "_?._", "_[?_]"})
"""Calls that cost one or nothing, however large their operands are."""
_SEARCHES = frozenset({"matches", "contains"})
_CONTAINERS = frozenset({"@in", "includes"})
_EQUALITY = frozenset({"_==_", "_!=_"})
_SCALARS = _NUMBERS | {"bool", "string", "bytes"}


def is_cheap(tree: Expression, largest: int, limit: int) -> bool:
    """Whether evaluating the checked tree stays below the limit, if no variable holds more than `largest`
    characters or entries."""
    return _is_light(tree) and _most(tree, max(largest, _longest_literal(tree))) <= limit


def _most(node: Expression, largest: int) -> int:
    """What evaluating the node can cost at most."""
    if isinstance(node, Comprehension):
        once = sum(_most(each, largest) for each in (node.range, node.initial, node.result))
        return once + largest * (_most(node.condition, largest) + _most(node.step, largest))
    below = sum(_most(each, largest) for each in children(node))
    if not isinstance(node, Call) or node.function in _LOGIC:
        return below + 1
    return below + _most_of_call(node, largest)


def _most_of_call(node: Call, largest: int) -> int:
    """What the call itself can cost at most: a tenth for each character that it reads, and one."""
    if node.function in _SEARCHES:  # the product of text and pattern
        return largest + largest * largest // 40
    if node.function in _CONTAINERS or (node.function in _EQUALITY and not _has_scalar(node)):
        return 20 * largest  # all that a list or a map holds
    return 1 + largest // 2


def _has_scalar(node: Call) -> bool:
    return any(each.type.kind in _SCALARS for each in node.args)


def _longest_literal(node: Expression) -> int:
    match node:
        case Literal():
            own = len(node.value) if isinstance(node.value, (str, bytes)) else 1
        case ListLiteral():
            own = len(node.elements)
        case MapLiteral():
            own = len(node.entries)
        case _:
            own = 0
    return max(own, *map(_longest_literal, children(node)), 0)


def _is_light(node: Expression) -> bool:
    """Whether no part of the checked expression can make a value larger than its parts."""
    match node:
        case Literal() | Ident():
            return True
        case Select() | Comprehension():
            pass
        case Call():
            if not _is_light_call(node):
                return False
        case ListLiteral() | MapLiteral():
            if not all(isinstance(each, Literal) for each in children(node)):
                return False
        case _:
            return False
    return all(map(_is_light, children(node)))


def _is_light_call(node: Call) -> bool:
    if node.function == "_+_":
        return all(each.type.kind in _NUMBERS for each in node.args)
    if node.function == "matches":
        pattern = node.args[-1]
        return isinstance(pattern, Literal) and isinstance(pattern.value, str) and _is_small(pattern.value)
    return node.function in _LIGHT


def _is_small(pattern: str) -> bool:
    try:
        return compiled(pattern).size <= _LARGEST_PATTERN
    except BadPattern:
        return True
