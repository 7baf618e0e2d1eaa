"""Routes: the resource, namespace, name and subresource of a URL path."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.apiserver.resources import Resource, ResourceTable


@dataclass(frozen=True, slots=True)
class Route:
    row: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()


def find_route(table: ResourceTable, parts: list[str]) -> Route | None:
    """`parts` is the path without its leading slash, split: `api/v1/…` or `apis/group/version/…`."""
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2:
        row = table.find(group, version, rest[2])
        if row is not None and row.namespaced:
            return _route(row, rest[1], rest[3:])
    row = table.find(group, version, rest[0])
    if row is None:
        return None
    return _route(row, "", rest[1:])


def _route(row: Resource, namespace: str, rest: list[str]) -> Route | None:
    name, subresource = [*rest, "", ""][:2]
    if row.namespaced and name and not namespace:
        return None
    if subresource and row.subresource(subresource) is None:
        return None
    return Route(row, namespace, name, subresource, tuple(rest[2:]))
