"""The functions that Kubernetes' CEL knows, one module a library.

Each module declares its functions, with their types and what they do; `KUBERNETES` is all of them together, as the
environment of a current API server has them. What a call costs is in `mooring.cel.call_costs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.cel.declarations import Function
from mooring.cel.library import (
    addresses,
    formats,
    lists,
    maps,
    optionals,
    quantity,
    semver,
    standard,
    strings,
    urls,
)


def merged(functions: Iterable[Function]) -> dict[str, Function]:
    """By name; overloads of one name from several libraries together."""
    by_name: dict[str, Function] = {}
    for each in functions:
        known = by_name.get(each.name)
        by_name[each.name] = each if known is None else known.joined(each)
    return by_name


KUBERNETES: Mapping[str, Function] = merged(
    [
        *standard.FUNCTIONS,
        *urls.FUNCTIONS,
        *strings.PATTERNS,
        *lists.KUBERNETES,
        *optionals.FUNCTIONS,
        *quantity.FUNCTIONS,
        *strings.FUNCTIONS,
        *lists.SETS,
        *addresses.FUNCTIONS,
        *formats.FUNCTIONS,
        *maps.FUNCTIONS,
        *semver.FUNCTIONS,
        *lists.EXTENSION,
    ]
)
