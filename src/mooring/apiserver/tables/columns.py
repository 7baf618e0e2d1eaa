"""What a printed column is, and the small readers that most columns are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.tables.ages import age

Cell = Callable[[Document, float], Any]
NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"


@dataclass(frozen=True)
class PrinterColumn:
    """A header and how its cells are read. Wide columns show only with `-o wide`."""

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


def column(name: str, read: Callable[[Document], Any], *, type: str = "string", wide: bool = False) -> PrinterColumn:
    """A column that does not depend on the time."""
    return PrinterColumn(name, lambda document, _: read(document), type=type, priority=int(wide))


def integer(name: str, *path: str) -> PrinterColumn:
    return column(name, lambda document: at(document, *path) or 0, type="integer")


def text(name: str, *path: str, otherwise: str = "", wide: bool = False) -> PrinterColumn:
    def read(document: Document) -> Any:
        found = at(document, *path)
        return otherwise if found in (None, "") else found

    return column(name, read, wide=wide)


def at(document: Document, *path: str) -> Any:
    here: Any = document
    for name in path:
        here = here.get(name) if isinstance(here, dict) else None
    return here


def _created(document: Document, now: float) -> str:
    return age(document["metadata"].get("creationTimestamp"), now)


NAME = PrinterColumn("Name", lambda document, _: document["metadata"]["name"], format="name")
AGE = PrinterColumn("Age", _created)


def labels_text(labels: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_cell(selector: Any) -> str:
    """A label selector as `get -o wide` shows it."""
    if not selector:
        return NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in items_of(selector, "matchExpressions"):
        values = ",".join(sorted(items_of(each, "values")))
        shown = {"In": f"{each.get('key')} in ({values})", "NotIn": f"{each.get('key')} notin ({values})"}
        shown |= {"Exists": f"{each.get('key')}", "DoesNotExist": f"!{each.get('key')}"}
        parts.append(shown.get(each.get("operator", ""), ""))
    return ",".join(parts) or NONE


def _containers(document: Document, field: str) -> str:
    return ",".join(
        str(each.get(field, "")) for each in items_of(part(document, "spec", "template", "spec"), "containers")
    )


CONTAINERS = column("Containers", lambda document: _containers(document, "name"), wide=True)
IMAGES = column("Images", lambda document: _containers(document, "image"), wide=True)
SELECTOR = column("Selector", lambda document: selector_cell(at(document, "spec", "selector")), wide=True)
