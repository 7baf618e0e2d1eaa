"""The generic registry: create, update, delete and restore, without HTTP, for every kind.

A kind's own rules are its strategy. Everything here is synchronous and runs on the server's one thread, so a
read and the write that follows it are one transaction.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

from mooring.apiserver.disabled_fields import drop_disabled
from mooring.apiserver.documents import Document, items_of, metadata_of, part
from mooring.apiserver.options import DeleteOptions
from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.schema import missing
from mooring.apiserver.status import (
    MODIFIED,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    required,
)
from mooring.apiserver.storage import Store, StoredObject
from mooring.apiserver.strategies import built_in_strategies
from mooring.apiserver.strategies.base import Strategy, StrategyContext
from mooring.apiserver.validation.metadata import check_metadata, check_metadata_update
from mooring.base.clock import timestamp

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "generation",
    "selfLink",
)
Change = Callable[[Document], Document]


class ResourceRegistry:
    """All verbs for all rows of the resource table."""

    def __init__(self, context: StrategyContext) -> None:
        self.context = context
        self.store: Store = context.store
        self.table: ResourceTable = context.table
        context.strategies.update(built_in_strategies())
        self._generic = Strategy()

    def strategy_of(self, row: Resource) -> Strategy:
        return self.context.strategies.get(row.storage, self._generic)

    # Reading

    def stored(self, row: Resource, namespace: str, name: str) -> StoredObject:
        if row.computed is not None:
            found = next((StoredObject(document, 0) for document in row.computed(namespace, name)), None)
        else:
            found = self.store.stored(row.storage, namespace, name)
        if found is None:
            raise not_found(row.group, row.plural, name)
        return found

    # Creating

    def create(self, row: Resource, namespace: str, document: Document, *, dry_run: bool = False) -> StoredObject:
        """Store a new object; `document` is in this row's version and is owned by the store afterwards."""
        strategy = self.strategy_of(row)
        metadata = metadata_of(document)
        self._place(row, namespace, metadata)
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        for field in SERVER_OWNED:
            metadata.pop(field, None)
        document = row.to_stored(document)
        metadata = document["metadata"]
        strategy.default(document, self.context)
        if row.namespaced:
            self._namespace_accepts(row, namespace, metadata.get("name", ""))
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generated(row, namespace, metadata["generateName"])
        strategy.admit(document, self.context)
        drop_disabled(row.storage, document, {}, self.context.features)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp(self.context.clock.now())
        metadata.pop("managedFields", None)
        strategy.prepare_create(document, self.context)
        errors = check_metadata(document, row.namespaced, strategy.name_rule)
        errors += self._with_required(row, strategy, document, strategy.validate(document, self.context))
        if errors:
            raise invalid(row.group, row.kind, metadata.get("name", ""), errors)
        strategy.admit_valid(document, self.context)
        if self.store.stored(row.storage, namespace, metadata["name"]) is not None:
            raise already_exists(row.group, row.plural, metadata["name"])
        if dry_run:
            return StoredObject(document, 0)
        stored = self.store.create(row.storage, document)
        strategy.after_create(document, self.context)
        return stored

    def restore(self, row: Resource, namespace: str, document: Document) -> list[FieldError]:
        """Store an object as another API server stored it: with its uid, age, generation, owners and status.

        It was admitted there, so admission does not run: what it would look up (classes, accounts) may be missing
        here. Nor is it refused for what this server's validation finds, as other versions validate otherwise: that is
        returned. An object of the same name is replaced.
        """
        strategy = self.strategy_of(row)
        metadata = metadata_of(document)
        self._place(row, namespace, metadata)
        for field in ("resourceVersion", "managedFields", "selfLink"):
            metadata.pop(field, None)
        document = row.to_stored(document)
        metadata = document["metadata"]
        if not metadata.get("uid"):
            metadata["uid"] = str(uuid.uuid4())
        if not metadata.get("creationTimestamp"):
            metadata["creationTimestamp"] = timestamp(self.context.clock.now())
        strategy.default(document, self.context)
        unusable = [] if metadata.get("name") else [required("metadata.name")]
        if unusable := unusable + strategy.validate_restore(document, self.context):
            raise invalid(row.group, row.kind, metadata.get("name", ""), unusable)
        strategy.prepare_restore(document, self.context)
        errors = check_metadata(document, row.namespaced, strategy.name_rule)
        errors += self._with_required(row, strategy, document, strategy.validate(document, self.context))
        if (before := self.store.stored(row.storage, namespace, metadata["name"])) is not None:
            self._remove(row, strategy, before)
        self.store.create(row.storage, document)
        strategy.after_create(document, self.context)
        return errors

    def _with_required(
        self, row: Resource, strategy: Strategy, document: Document, errors: list[FieldError]
    ) -> list[FieldError]:
        """The strategy's errors, and required fields that these do not cover."""
        if row.type_name is None or not strategy.checks_required:
            return errors
        reported = {error.path for error in errors} | strategy.nullable
        return errors + [required(path) for path in missing(document, row.type_name) if path not in reported]

    def _place(self, row: Resource, namespace: str, metadata: Document) -> None:
        if not row.namespaced:
            metadata.pop("namespace", None)
            return
        given = metadata.setdefault("namespace", namespace) or namespace
        if given != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace

    def _namespace_accepts(self, row: Resource, namespace: str, name: str) -> None:
        found = self.store.get("namespaces", "", namespace)
        if found is None:
            raise not_found("", "namespaces", namespace)
        if part(found, "metadata").get("deletionTimestamp") or part(found, "status").get("phase") == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(row.group, row.plural, name, why)

    def _generated(self, row: Resource, namespace: str, prefix: str) -> str:
        while True:
            # A name has at most 63 characters, so that it can be a label value.
            name = prefix[:58] + "".join(random.choices(_SUFFIX_LETTERS, k=5))
            if self.store.stored(row.storage, namespace, name) is None:
                return name

    # Changing

    def update(
        self, row: Resource, namespace: str, name: str, change: Change, *, status: bool = False, dry_run: bool = False
    ) -> tuple[StoredObject, bool]:
        """Replace an object by what `change` makes of it, in this row's version. Returns it and whether it is new."""
        strategy = self.strategy_of(row)
        current = self.store.stored(row.storage, namespace, name)
        if current is None:
            if strategy.create_on_update and not status:
                return self.create(row, namespace, change({}), dry_run=dry_run), True
            raise not_found(row.group, row.plural, name)
        old = current.document
        document = row.to_stored(change(row.to_served(old)))
        metadata = metadata_of(document)
        self._same_object(row, name, namespace, metadata, old)
        document.setdefault("apiVersion", old.get("apiVersion"))
        document.setdefault("kind", old.get("kind"))
        strategy.default(document, self.context)
        drop_disabled(row.storage, document, old, self.context.features)
        if status:
            strategy.prepare_status(document, old, self.context)
        else:
            strategy.prepare_update(document, old, self.context)
        if document == old:
            return current, False
        if errors := self._new_errors(row, strategy, document, old, status=status):
            raise invalid(row.group, row.kind, name, errors)
        if dry_run:
            return StoredObject(document, current.revision), False
        return self._changed(row, strategy, document, current), False

    def _new_errors(
        self, row: Resource, strategy: Strategy, document: Document, old: Document, *, status: bool
    ) -> list[FieldError]:
        """The errors of an update, without those that the object has had since it was restored."""

        def errors_of(changed: Document) -> list[FieldError]:
            errors = check_metadata(changed, row.namespaced, _any_name) + check_metadata_update(changed, old)
            if status:
                return errors + strategy.validate_status(changed, old, self.context)
            kind_errors = strategy.validate_update(changed, old, self.context)
            return errors + self._with_required(row, strategy, changed, kind_errors)

        if not (errors := errors_of(document)):
            return []
        before = set(errors_of(old))
        return [error for error in errors if error not in before]

    def _same_object(self, row: Resource, name: str, namespace: str, metadata: Document, old: Document) -> None:
        then = old["metadata"]
        if metadata.setdefault("name", name) != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        self._place(row, namespace, metadata)
        version = metadata.get("resourceVersion")
        if version not in (None, "", "0") and version != then["resourceVersion"]:
            raise conflict(row.group, row.plural, name, MODIFIED)
        check_preconditions(row, then, metadata.get("uid"))
        metadata.pop("managedFields", None)
        for field in SERVER_OWNED:
            if field in then:
                metadata[field] = then[field]
            else:
                metadata.pop(field, None)
        for field in ("labels", "annotations", "finalizers", "ownerReferences"):
            if field in metadata and not metadata[field]:
                del metadata[field]

    def _changed(self, row: Resource, strategy: Strategy, document: Document, current: StoredObject) -> StoredObject:
        """Store a change; a terminating object is removed when its last finalizer is."""
        stored = self.store.update(row.storage, document, current)
        strategy.after_update(document, current.document, self.context)
        metadata = document["metadata"]
        if (
            metadata.get("deletionTimestamp")
            and not metadata.get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
            and not part(document, "spec").get("finalizers")
        ):
            self._remove(row, strategy, stored)
        return stored

    # Deleting

    def delete(self, row: Resource, namespace: str, name: str, options: DeleteOptions) -> tuple[Document, bool]:
        """Remove the object, or mark it as terminating. Returns it and whether it is removed."""
        strategy = self.strategy_of(row)
        current = self.stored(row, namespace, name)
        old = current.document
        check_preconditions(row, old["metadata"], options.uid, options.resource_version)
        strategy.admit_delete(old, self.context)
        grace = strategy.grace_seconds(old, options.grace_seconds) or 0
        finalizers = self._finalizers(old, options)
        then = old["metadata"]
        if not grace and not finalizers and not part(old, "spec").get("finalizers"):
            return (old if options.dry_run else self._remove(row, strategy, current).document), True
        marked = dict(old)
        metadata = marked["metadata"] = dict(then)
        if then.get("deletionTimestamp") is None:
            metadata["deletionTimestamp"] = timestamp(self.context.clock.now() + grace)
            metadata["deletionGracePeriodSeconds"] = grace
            if metadata.get("generation"):
                metadata["generation"] += 1
        elif grace < then.get("deletionGracePeriodSeconds", 0):
            metadata["deletionTimestamp"] = timestamp(self.context.clock.now() + grace)
            metadata["deletionGracePeriodSeconds"] = grace
        if finalizers:
            metadata["finalizers"] = finalizers
        if marked == old:
            return old, False
        self._mark_terminating(row, marked)
        if options.dry_run:
            return marked, False
        return self._changed(row, strategy, marked, current).document, False

    def finalize_namespace(self, name: str, finalizers: list[str]) -> Document:
        """Set the finalizers of a namespace; a terminating one without any is removed."""
        row = self.table.find("", "v1", "namespaces")
        assert row is not None
        current = self.stored(row, "", name)
        changed = {**current.document, "metadata": dict(current.document["metadata"])}
        changed["spec"] = {**part(changed, "spec"), "finalizers": finalizers}
        return self._changed(row, self.strategy_of(row), changed, current).document

    def _mark_terminating(self, row: Resource, marked: Document) -> None:
        if row.storage == "namespaces":
            marked["status"] = {**part(marked, "status"), "phase": "Terminating"}

    def _finalizers(self, old: Document, options: DeleteOptions) -> list[str]:
        present = [
            name for name in items_of(old["metadata"], "finalizers") if name not in ("foregroundDeletion", "orphan")
        ]
        if options.propagation == "Foreground":
            return [*present, "foregroundDeletion"]
        if options.propagation == "Orphan":
            return [*present, "orphan"]
        if options.propagation is None:
            return items_of(old["metadata"], "finalizers")
        return present

    def _remove(self, row: Resource, strategy: Strategy, current: StoredObject) -> StoredObject:
        gone = self.store.delete(row.storage, current)
        strategy.after_delete(gone.document, self.context)
        return gone


def check_preconditions(
    row: Resource, metadata: Document, uid: str | None, resource_version: str | None = None
) -> None:
    """Reject a request whose preconditions the stored object does not meet."""
    for field, expected, found in (
        ("UID", uid, metadata["uid"]),
        ("ResourceVersion", resource_version, metadata["resourceVersion"]),
    ):
        if expected and expected != found:
            why = f"Precondition failed: {field} in precondition: {expected}, {field} in object meta: {found}"
            raise conflict(row.group, row.plural, metadata["name"], why)


def _any_name(_: str) -> list[str]:
    """The name is immutable and was validated at creation."""
    return []
