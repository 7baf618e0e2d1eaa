"""What of a pod may change after its creation: little, and less once nothing gates it."""

from __future__ import annotations

from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value
from mooring.apiserver.validation.pod import check_pod

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(pod: Document, old: Document) -> list[FieldError]:
    now, then = pod["spec"], old["spec"]
    if now == then:
        return []
    wrong = check_pod(pod)
    for field in ("containers", "initContainers"):
        if len(items_of(now, field)) != len(items_of(then, field)):
            why = "pod updates may not add or remove containers"
            return [*wrong, forbidden_field(f"spec.{field}", why)]
    wrong += _deadline(now.get("activeDeadlineSeconds"), then.get("activeDeadlineSeconds"))
    if any(not _kept(each, items_of(now, "tolerations")) for each in items_of(then, "tolerations")):
        why = "existing toleration can not be modified except its tolerationSeconds"
        wrong.append(forbidden_field("spec.tolerations", why))
    gates_then = [gate.get("name") for gate in items_of(then, "schedulingGates")]
    for index, gate in enumerate(items_of(now, "schedulingGates")):
        if gate.get("name") not in gates_then:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            wrong.append(forbidden_field(f"spec.schedulingGates[{index}].name", why))
            break
    compared = _with_updatable_fields_of(now, then)
    if gates_then:
        wrong += _gated_changes(compared, now, then)
    if compared != then:
        changed = sorted(field for field in compared.keys() | then.keys() if compared.get(field) != then.get(field))
        told = "\n".join(f"  {field}: {then.get(field)!r} -> {now.get(field)!r}" for field in changed)
        wrong.append(forbidden_field("spec", f"pod updates may not change fields other than {UPDATABLE}\n{told}"))
    return wrong


def _deadline(now: int | None, then: int | None) -> list[FieldError]:
    path = "spec.activeDeadlineSeconds"
    if now is None and then is not None:
        return [invalid_value(path, None, "must not update from a positive integer to nil value")]
    if now is not None and then is not None and now > then:
        return [invalid_value(path, now, "must be less than or equal to previous value")]
    return []


def _kept(toleration: Any, tolerations: list[Any]) -> bool:
    def without_seconds(each: Any) -> Any:
        return {key: value for key, value in each.items() if key != "tolerationSeconds"}

    return any(without_seconds(each) == without_seconds(toleration) for each in tolerations)


def _with_updatable_fields_of(now: Document, then: Document) -> Document:
    """The new spec with the old values wherever a change is allowed or was judged already."""
    compared = dict(now)
    for field in ("containers", "initContainers"):
        if field in now:
            compared[field] = [
                {**mine, "image": old.get("image")}
                for mine, old in zip(items_of(now, field), items_of(then, field), strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _as_before(compared, then, field)
    if then.get("terminationGracePeriodSeconds", 0) < 0 and now.get("terminationGracePeriodSeconds") == 1:
        _as_before(compared, then, "terminationGracePeriodSeconds")
    return compared


def _as_before(compared: Document, then: Document, field: str) -> None:
    if field in then:
        compared[field] = then[field]
    else:
        compared.pop(field, None)


def _gated_changes(compared: Document, now: Document, then: Document) -> list[FieldError]:
    """A gated pod may still narrow where it can run: more node selectors, tighter required node affinity."""
    wrong: list[FieldError] = []
    selector_now, selector_then = now.get("nodeSelector") or {}, then.get("nodeSelector") or {}
    if any(selector_now.get(key) != value for key, value in selector_then.items()):
        why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        wrong.append(invalid_value("spec.nodeSelector", selector_now, why))
    _as_before(compared, then, "nodeSelector")
    affinity_now, affinity_then = dict(now.get("affinity") or {}), dict(then.get("affinity") or {})
    node_now, node_then = affinity_now.pop("nodeAffinity", None), affinity_then.pop("nodeAffinity", None)
    if node_then is not None and node_now != node_then and not _is_narrower(node_now or {}, node_then):
        why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        wrong.append(invalid_value("spec.affinity.nodeAffinity", node_now, why))
    if affinity_now == affinity_then:
        _as_before(compared, then, "affinity")
    return wrong


def _is_narrower(now: Document, then: Document) -> bool:
    hard = "requiredDuringSchedulingIgnoredDuringExecution"
    terms_then = items_of(then.get(hard) or {}, "nodeSelectorTerms")
    terms_now = items_of(now.get(hard) or {}, "nodeSelectorTerms")
    if not terms_then:
        return True
    if len(terms_now) != len(terms_then):
        return False
    return all(
        items_of(mine, field)[: len(items_of(old, field))] == items_of(old, field)
        for mine, old in zip(terms_now, terms_then, strict=True)
        for field in ("matchExpressions", "matchFields")
    )
