"""Which columns kubectl prints for a kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mooring.apiserver.documents import Document
from mooring.apiserver.resources import Resource
from mooring.apiserver.tables.ages import age

Cell = Callable[[Document, float], Any]


@dataclass(frozen=True)
class Column:
    """A header and how its cells are read. Priority 1 columns show only with `-o wide`."""

    name: str
    read: Cell
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> Document:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }

    def cell(self, document: Document, now: float) -> Any:
        return self.read(document, now)


def _created(document: Document, now: float) -> str:
    return age(document["metadata"].get("creationTimestamp"), now)


NAME = Column("Name", lambda document, _: document["metadata"]["name"], format="name")
AGE = Column("Age", _created)


def columns_for(row: Resource) -> list[Column]:
    return [NAME, AGE]
