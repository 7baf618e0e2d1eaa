"""Events: stored as core/v1, served as core/v1 and events.k8s.io/v1."""

from __future__ import annotations

from collections import deque

from mooring.apiserver.documents import Document, metadata_of, part
from mooring.apiserver.status import FieldError, invalid_value, required
from mooring.apiserver.strategies.base import CreateOnUpdateStrategy, FieldReader, StrategyContext, text_at

TTL_SECONDS = 3600.0
# A busy hour must not fill the memory of a test cluster: beyond this number the oldest expire early.
MAX_EVENTS = 50_000
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: new for new, core in _RENAMED.items()}


def to_core(event: Document) -> Document:
    """An events.k8s.io/v1 event in the stored form."""
    stored = {_RENAMED.get(field, field): value for field, value in event.items()}
    stored["apiVersion"] = "v1"
    stored.setdefault("involvedObject", {})
    stored.setdefault("source", {})
    return stored


def to_events_v1(event: Document) -> Document:
    """A stored event as events.k8s.io/v1."""
    shown = {_BACK.get(field, field): value for field, value in event.items()}
    shown["apiVersion"] = "events.k8s.io/v1"
    shown.setdefault("eventTime", None)
    return shown


def _source(event: Document) -> str:
    return str(part(event, "source").get("component") or event.get("reportingComponent") or "")


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, FieldReader] = {
    **{f"involvedObject.{name}": text_at("involvedObject", name) for name in _INVOLVED},
    **{f"regarding.{name}": text_at("involvedObject", name) for name in _INVOLVED},
    "reason": text_at("reason"),
    "reportingComponent": text_at("reportingComponent"),
    "reportingController": text_at("reportingComponent"),
    "source": _source,
    "type": text_at("type"),
}


class EventStrategy(CreateOnUpdateStrategy):
    """Events expire after an hour, as upstream; a later one removes them."""

    checks_required = False
    fields = _FIELDS

    def __init__(self) -> None:
        self._expiring: deque[tuple[float, StrategyContext, str, str]] = deque()

    def default(self, document: Document, context: StrategyContext) -> None:
        document.setdefault("involvedObject", {})
        document.setdefault("source", {})
        document.setdefault("reportingComponent", "")
        document.setdefault("reportingInstance", "")
        document.setdefault("eventTime", None)

    def validate(self, document: Document, context: StrategyContext) -> list[FieldError]:
        namespace = metadata_of(document).get("namespace", "")
        involved = part(document, "involvedObject").get("namespace", "")
        errors: list[FieldError] = []
        if involved != namespace and not (not involved and namespace in ("default", "kube-system")):
            why = "does not match event.namespace"
            errors.append(invalid_value("involvedObject.namespace", involved, why))
        if document.get("eventTime"):
            for field, shown in (
                ("reportingComponent", "reportingController"),
                ("reportingInstance", "reportingInstance"),
                ("action", "action"),
                ("reason", "reason"),
            ):
                if not document.get(field):
                    errors.append(required(shown))
            if len(document.get("message", "")) > 1024:
                errors.append(invalid_value("message", "", "can have at most 1024 characters"))
        series = document.get("series")
        if series is not None and series.get("count", 0) < 2:
            errors.append(invalid_value("series.count", series.get("count", 0), "should be at least 2"))
        return errors

    def validate_update(self, document: Document, old: Document, context: StrategyContext) -> list[FieldError]:
        return []

    def after_create(self, document: Document, context: StrategyContext) -> None:
        metadata, now = document["metadata"], context.clock.now()
        self._expiring.append((now + TTL_SECONDS, context, metadata["namespace"], metadata["name"]))
        while self._expiring[0][0] <= now or len(self._expiring) > MAX_EVENTS:
            _, where, namespace, name = self._expiring.popleft()
            expired = where.store.stored("events", namespace, name)
            if expired is not None:
                where.store.delete("events", expired)
