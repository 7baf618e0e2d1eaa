"""The table of resources: one row per (group, version, plural), built-in rows from data, custom rows at run time.

A row has a resource's names, the storage key of its objects, and the conversions between the stored and the served
version. Strategies are looked up by storage key: all versions of a kind share one, and so do the two APIs of events.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

from mooring.apiserver.documents import Converter, Document, decode, identity

if TYPE_CHECKING:
    from mooring.apiserver.tables.columns import PrinterColumn


class CustomVersion(Protocol):
    """The schema of one version of a custom resource."""

    @property
    def columns(self) -> list[PrinterColumn]: ...

    @property
    def scale(self) -> Document | None: ...

    def coerce(self, document: Document) -> list[str]:
        """Prune and default a request body in place; returns the unknown fields."""
        ...


@dataclass(frozen=True)
class Conversion:
    """A resource whose objects are stored in the version of another one, under its storage key."""

    storage: str
    to_served: Converter
    to_stored: Converter


@dataclass(frozen=True)
class Subresource:
    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str | None = None
    version: str | None = None


@dataclass(frozen=True, eq=False)
class Resource:
    """One row."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    type_name: str | None = None
    subresources: tuple[Subresource, ...] = ()
    storage: str = ""
    to_served: Converter = identity
    to_stored: Converter = identity
    custom: CustomVersion | None = None
    list_kind: str = ""
    openapi: Document = field(default_factory=dict)
    computed: Callable[[str, str], Iterable[Document]] | None = None
    """Computes the objects of a namespace ("" for all) and name ("" for all): they are read only, and not stored."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def subresource(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)


def read_table(name: str) -> Any:
    """One of the generated tables beside this module."""
    return decode(gzip.decompress((files("mooring.apiserver") / "data" / f"{name}.json.gz").read_bytes()))


GATED_VERSIONS = {("scheduling.k8s.io", "v1alpha2"): "GenericWorkload"}
"""Group versions that are served while a feature gate is on."""


def built_in_rows(
    conversions: Mapping[tuple[str, str, str], Conversion], features: Collection[str] = ()
) -> list[Resource]:
    """The generated rows; `conversions` has those that another resource stores, `features` the gates that are on."""
    rows = [
        Resource(
            group=row["group"],
            version=row["version"],
            plural=row["plural"],
            singular=row["singular"],
            kind=row["kind"],
            namespaced=row["namespaced"],
            verbs=tuple(row["verbs"]),
            short_names=tuple(row["shortNames"]),
            categories=tuple(row["categories"]),
            type_name=row["type"],
            list_kind=row["kind"] + "List",
            storage=f"{row['plural']}.{row['group']}" if row["group"] else row["plural"],
            subresources=tuple(
                Subresource(sub["name"], sub["kind"], tuple(sub["verbs"]), sub.get("group"), sub.get("version"))
                for sub in row["subresources"]
            ),
        )
        for row in read_table("resources")
        if (gate := GATED_VERSIONS.get((row["group"], row["version"]))) is None or gate in features
    ]
    return [
        replace(row, storage=conversion.storage, to_served=conversion.to_served, to_stored=conversion.to_stored)
        if (conversion := conversions.get((row.group, row.version, row.plural)))
        else row
        for row in rows
    ]


class ResourceTable:
    """Every resource that is served now; definitions of custom resources add to it."""

    def __init__(self, rows: list[Resource]) -> None:
        self._rows: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0
        for row in rows:
            self.add(row)

    def add(self, row: Resource) -> None:
        self._rows[row.group, row.version, row.plural] = row
        self.generation += 1

    def remove(self, row: Resource) -> None:
        if self._rows.pop((row.group, row.version, row.plural), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._rows.get((group, version, plural))

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._rows.values()))

    def stored_as(self, storage: str) -> list[Resource]:
        return [row for row in self if row.storage == storage]

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        return next((row for row in self if row.api_version == api_version and row.kind == kind), None)

    def group_versions(self) -> dict[str, list[str]]:
        """Group to its versions, in the order of the rows."""
        groups: dict[str, list[str]] = {}
        for row in self:
            versions = groups.setdefault(row.group, [])
            if row.version not in versions:
                versions.append(row.version)
        return groups
