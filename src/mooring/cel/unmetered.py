"""Which expressions need no meter: their estimate bounds their time, because nothing in them makes larger values.

Only variables and literals are as large as they are. What concatenates, collects, replaces or repeats could make more
of them than the estimate sees, so such expressions are metered whatever their estimate is.
"""

from __future__ import annotations

from mooring.base.regex import BadPattern, compiled
from mooring.cel.syntax import Call, Comprehension, Ident, ListLiteral, Literal, MapLiteral, Node, Select, children

_LARGEST_PATTERN = 100
"""Instructions of a regular expression whose search is about as fast as its estimate says."""
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


def is_light(node: Node) -> bool:
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
    return all(map(is_light, children(node)))


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
