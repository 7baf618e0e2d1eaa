"""Validation of pod updates: few fields are mutable, and fewer once the pod is not gated.

A mutable field has a rule in a table. A rule compares the new and the old value and returns no errors, errors of its
own, or `FROZEN` where the field is mutable but not in this way. All other fields are immutable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.apiserver.documents import Document, items_of, part
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value, quoted
from mooring.apiserver.validation.pod import check_pod

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
FROZEN = None
Verdict = list[FieldError] | None
Rule = Callable[[Any, Any], Verdict]
_NOTHING: tuple[Any, ...] = (None, [], {})
_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def check_pod_update(pod: Document, old: Document) -> list[FieldError]:
    now, then = pod["spec"], old["spec"]
    changes = {
        field: (now.get(field), then.get(field))
        for field in sorted(now.keys() | then.keys())
        if _without_nothing(now.get(field)) != _without_nothing(then.get(field))
    }
    if not changes:
        return []
    errors = check_pod(pod)
    if counts := _container_counts(now, then):
        return errors + counts
    rules = MAY_CHANGE | MAY_CHANGE_WHILE_GATED if then.get("schedulingGates") else MAY_CHANGE
    verdicts = {field: rule(*changes[field]) for field, rule in rules.items() if field in changes}
    errors += [error for verdict in verdicts.values() for error in verdict or ()]
    if frozen := [field for field in changes if verdicts.get(field, FROZEN) is FROZEN]:
        changed = "\n".join(
            f"  {field}: {_shown(changes[field][1])} -> {_shown(changes[field][0])}" for field in frozen
        )
        errors.append(forbidden_field("spec", f"pod updates may not change fields other than {UPDATABLE}\n{changed}"))
    return errors


def _without_nothing(value: Any) -> Any:
    """An empty list or mapping means what a missing one means."""
    return None if value in _NOTHING else value


def _shown(value: Any) -> str:
    return "unset" if value is None else quoted(value)


def _container_counts(now: Document, then: Document) -> list[FieldError]:
    """Containers are compared one by one, so more or fewer of them end the comparison."""
    why = "pod updates may not add or remove containers"
    for field in ("containers", "initContainers"):
        if len(items_of(now, field)) != len(items_of(then, field)):
            return [forbidden_field(f"spec.{field}", why)]
    return []


def _only_images(now: list[Any], then: list[Any]) -> Verdict:
    def without_image(container: Document) -> Document:
        return {key: value for key, value in container.items() if key != "image"}

    return [] if list(map(without_image, now)) == list(map(without_image, then)) else FROZEN


def _only_sooner(now: int | None, then: int | None) -> Verdict:
    path = "spec.activeDeadlineSeconds"
    if now is None:
        return [invalid_value(path, None, "must not update from a positive integer to nil value")]
    if then is not None and now > then:
        return [invalid_value(path, now, "must be less than or equal to previous value")]
    return []


def _only_more_tolerated(now: list[Any] | None, then: list[Any] | None) -> Verdict:
    """Existing tolerations may only change `tolerationSeconds`."""

    def without_seconds(toleration: Document) -> Document:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = list(map(without_seconds, now or []))
    if all(without_seconds(toleration) in kept for toleration in then or []):
        return []
    return [forbidden_field("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _only_fewer_gates(now: list[Any] | None, then: list[Any] | None) -> Verdict:
    known = {gate.get("name") for gate in then or []}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(now or [])
        if gate.get("name") not in known
    ]


def _only_from_negative_to_one(now: int | None, then: int | None) -> Verdict:
    return [] if (then or 0) < 0 and now == 1 else FROZEN


def _only_more_labels(now: Document | None, then: Document | None) -> Verdict:
    if (then or {}).items() <= (now or {}).items():
        return []
    why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [invalid_value("spec.nodeSelector", now or {}, why)]


def _only_narrower_node_affinity(now: Document | None, then: Document | None) -> Verdict:
    def of_pods(affinity: Document | None) -> Document:
        return {key: value for key, value in (affinity or {}).items() if key != "nodeAffinity"}

    return _only_narrower(_required_terms(now), _required_terms(then)) if of_pods(now) == of_pods(then) else FROZEN


def _required_terms(affinity: Document | None) -> list[Any]:
    required = part(affinity or {}, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return items_of(required, "nodeSelectorTerms")


def _only_narrower(now: list[Any], then: list[Any]) -> list[FieldError]:
    """Terms are alternatives: another one would widen the selection, another requirement narrows it."""
    if not then:
        return []
    if len(now) != len(then):
        return [invalid_value(_TERMS, now, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    return [
        invalid_value(f"{_TERMS}[{index}]", term, "only additions are allowed (no mutations or deletions)")
        for index, (term, before) in enumerate(zip(now, then, strict=True))
        if not _adds_only(term, before)
    ]


def _adds_only(term: Document, before: Document) -> bool:
    lists = [(items_of(term, field), items_of(before, field)) for field in ("matchExpressions", "matchFields")]
    # A term without requirements selects no node: any requirement would widen it.
    if not any(old for _, old in lists):
        return not any(new for new, _ in lists)
    return all(new[: len(old)] == old for new, old in lists)


MAY_CHANGE: dict[str, Rule] = {
    "containers": _only_images,
    "initContainers": _only_images,
    "activeDeadlineSeconds": _only_sooner,
    "tolerations": _only_more_tolerated,
    "schedulingGates": _only_fewer_gates,
    "terminationGracePeriodSeconds": _only_from_negative_to_one,
}
# A gated pod may still narrow its node selection.
MAY_CHANGE_WHILE_GATED: dict[str, Rule] = {
    "nodeSelector": _only_more_labels,
    "affinity": _only_narrower_node_affinity,
}
