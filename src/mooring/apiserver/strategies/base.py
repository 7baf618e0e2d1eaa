"""Strategies: the defaulting, admission and validation of one kind, called by the registry.

In this order. Create: `default`, `admit`, `prepare_create`, `validate`, `admit_valid`. Update: `default`,
`prepare_update`, `validate_update`. Status: `default`, `prepare_status`, `validate_status`. Restore: `default`,
`validate_restore`, `prepare_restore`, and `validate`, whose errors are notes.
Documents handed in are copies and may be changed; `old` never.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from mooring.apiserver.documents import Document, ensured, metadata_of, part
from mooring.apiserver.resources import ResourceTable
from mooring.apiserver.status import FieldError
from mooring.apiserver.storage import Store
from mooring.base.clock import Clock
from mooring.objects.names import dns_subdomain

FieldReader = Callable[[Document], str]


@dataclass(frozen=True)
class StrategyContext:
    """What a strategy may read beyond its object."""

    store: Store
    table: ResourceTable
    clock: Clock
    # By storage key. Definitions of custom resources add to it while the server runs.
    strategies: dict[str, Strategy] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    """The feature gates that are on, as far as the server has to know."""


def text_at(*path: str) -> FieldReader:
    """Reads a field for field selectors: its text, "" where it is absent."""

    def read(document: Document) -> str:
        here: object = document
        for name in path:
            here = here.get(name) if isinstance(here, dict) else None
        if isinstance(here, bool):
            return "true" if here else "false"
        return "" if here is None else str(here)

    return read


class Strategy:
    """The generic strategy: metadata, generation, and a status that clients cannot set at creation."""

    has_status: ClassVar[bool] = False
    has_generation: ClassVar[bool] = False
    # A kubelet registers its node with its status.
    keeps_status_at_creation: ClassVar[bool] = False
    # Whether fields that the type table requires are checked; kinds with their own validation report them better.
    checks_required: ClassVar[bool] = True
    # Required fields that may be absent all the same: Go clients write an empty list as null.
    nullable: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[dict[str, FieldReader]] = {}
    create_on_update: ClassVar[bool] = False
    # A warning for clients that create such an object: what the embedded cluster does not do with it.
    warning_on_create: ClassVar[str] = ""

    def name_rule(self, name: str) -> list[str]:
        return dns_subdomain(name)

    def default(self, document: Document, context: StrategyContext) -> None:
        """Apply the API's defaults, at every write."""

    def admit(self, document: Document, context: StrategyContext) -> None:
        """Mutate or reject the object by what other objects are; at creation only."""

    def admit_valid(self, document: Document, context: StrategyContext) -> None:
        """Reject an object that is valid in itself by what other objects are; at creation only, after `validate`."""

    def prepare_create(self, document: Document, context: StrategyContext) -> None:
        if self.has_status and not (self.keeps_status_at_creation and document.get("status")):
            document["status"] = self.initial_status(document)
        if self.has_generation:
            metadata_of(document)["generation"] = 1

    def prepare_restore(self, document: Document, context: StrategyContext) -> None:
        """Complete an object that another API server stored: status and generation stay as they are."""
        if self.has_status and not document.get("status"):
            document["status"] = self.initial_status(document)
        if self.has_generation:
            metadata_of(document).setdefault("generation", 1)

    def initial_status(self, document: Document) -> Document:
        return {}

    def prepare_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        if self.has_status:
            _restore(document, old, "status")
        if self.has_generation:
            generation = part(old, "metadata").get("generation", 0)
            has_changed = self.generation_content(document) != self.generation_content(old)
            metadata_of(document)["generation"] = generation + has_changed

    def generation_content(self, document: Document) -> object:
        """What increments the generation when it changes: the spec."""
        return document.get("spec")

    def prepare_status(self, document: Document, old: Document, context: StrategyContext) -> None:
        """A status write changes the status and, as upstream, labels and annotations; nothing else."""
        for name in old.keys() | document.keys():
            if name not in ("status", "metadata"):
                _restore(document, old, name)
        metadata_of(document)["generation"] = part(old, "metadata").get("generation")
        if metadata_of(document)["generation"] is None:
            del metadata_of(document)["generation"]

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        return []

    def validate_restore(self, document: Document, context: StrategyContext) -> list[FieldError]:
        """What this server cannot do without in an object that another one stored; for most kinds nothing."""
        return []

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return self.validate(document, context)

    def validate_status(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return []

    def admit_delete(self, document: Document, context: StrategyContext) -> None:
        """Reject the deletion of an object that must stay."""

    def grace_seconds(self, document: Document, requested: int | None) -> int | None:
        """The grace period of a deletion, in which the kubelet stops a pod; None: the object is removed at once."""
        return None

    def after_create(self, document: Document, context: StrategyContext) -> None:
        """After the object is stored."""

    def after_update(self, document: Document, old: Document, context: StrategyContext) -> None:
        """After a change is stored."""

    def after_delete(self, document: Document, context: StrategyContext) -> None:
        """After the object is removed."""


class CreateOnUpdateStrategy(Strategy):
    """A kind whose objects an update creates where there is none: leases, events, roles and role bindings."""

    create_on_update = True


def _restore(document: Document, old: Document, name: str) -> None:
    if name in old:
        document[name] = old[name]
    else:
        document.pop(name, None)


def set_default(document: Document, name: str, value: object) -> None:
    """Set an absent (or null) field."""
    if document.get(name) is None:
        document[name] = value


def set_text(document: Document, name: str, value: str) -> None:
    """Set a text that is absent or empty."""
    if not document.get(name):
        document[name] = value


def spec_of(document: Document) -> Document:
    return ensured(document, "spec")


def stored_only_warning(what: str, missing: str) -> str:
    """The warning about a kind that no controller of the embedded cluster acts on."""
    return f"the embedded cluster stores {what} but {missing}"
