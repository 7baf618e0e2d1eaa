"""Rules of what a pod says about where it may run: affinity, tolerations, spreading, gates."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import FieldError, duplicate, invalid_value, required, unsupported
from mooring.apiserver.validation.selectors import (
    broken,
    check_label_selector,
    check_node_selector,
    check_node_selector_term,
)
from mooring.objects.names import NameRule, label_value, qualified_name

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
_POSITIVE = "must be greater than zero"

Check = Callable[[Document, str], list[FieldError]]


def _each(items: list[Any], path: str, *checks: Check) -> list[FieldError]:
    """Every check of every item, item by item."""
    return [error for index, item in enumerate(items) for check in checks for error in check(item, f"{path}[{index}]")]


# Tolerations


def _absent(value: str) -> list[str]:
    return ["value must be empty when `operator` is 'Exists'"] if value else []


def _decimal(value: str) -> list[str]:
    return [] if re.fullmatch(r"0|-?[1-9][0-9]*", value) else ["must be a decimal integer"]


# For each operator, the rule of its value, and the field that kube-apiserver names when the value breaks it.
_VALUE_RULES: dict[str, tuple[NameRule, str]] = {
    "": (label_value, "operator"),
    "Equal": (label_value, "operator"),
    "Exists": (_absent, "operator"),
    "Lt": (_decimal, "value"),
    "Gt": (_decimal, "value"),
}


def _tolerated_key(toleration: Document, path: str) -> list[FieldError]:
    if key := toleration.get("key"):
        return broken(qualified_name, key, f"{path}.key")
    operator = toleration.get("operator", "")
    why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
    return [] if operator == "Exists" else [invalid_value(f"{path}.operator", operator, why)]


def _tolerated_time(toleration: Document, path: str) -> list[FieldError]:
    effect = toleration.get("effect", "")
    why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
    is_timed = toleration.get("tolerationSeconds") is not None
    return [invalid_value(f"{path}.effect", effect, why)] if is_timed and effect != "NoExecute" else []


def _tolerated_value(toleration: Document, path: str) -> list[FieldError]:
    operator = toleration.get("operator", "")
    if operator not in _VALUE_RULES:
        return [unsupported(f"{path}.operator", operator, ("Equal", "Exists"))]
    rule, named = _VALUE_RULES[operator]
    return broken(rule, toleration.get("value", ""), f"{path}.{named}")


def _tolerated_effect(toleration: Document, path: str) -> list[FieldError]:
    effect = toleration.get("effect")
    return [unsupported(f"{path}.effect", effect, TAINT_EFFECTS)] if effect and effect not in TAINT_EFFECTS else []


def check_tolerations(tolerations: list[Any], path: str) -> list[FieldError]:
    return _each(tolerations, path, _tolerated_key, _tolerated_time, _tolerated_value, _tolerated_effect)


# Affinity


def _weight(term: Document, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _inner(field: str, check: Check) -> Check:
    """A check of what a weighted term wraps."""
    return lambda term, path: check(term.get(field) or {}, f"{path}.{field}")


def _pod_term(term: Document, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        wrong += check_label_selector(term.get(field), f"{path}.{field}")
    key = term.get("topologyKey")
    return wrong + (broken(qualified_name, key, f"{path}.topologyKey") if key else _topology_key(term, path))


def check_affinity(affinity: Any, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    if not affinity:
        return wrong
    node = affinity.get("nodeAffinity") or {}
    if node.get(HARD) is not None:
        wrong += check_node_selector(node[HARD], f"{path}.nodeAffinity.{HARD}")
    preference = _inner("preference", check_node_selector_term)
    wrong += _each(items_of(node, SOFT), f"{path}.nodeAffinity.{SOFT}", _weight, preference)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        wrong += _each(items_of(terms, HARD), f"{path}.{kind}.{HARD}", _pod_term)
        wrong += _each(items_of(terms, SOFT), f"{path}.{kind}.{SOFT}", _weight, _inner("podAffinityTerm", _pod_term))
    return wrong


# Spreading


def _one_of(field: str, *allowed: str, optional: bool = False) -> Check:
    def check(constraint: Document, path: str) -> list[FieldError]:
        value = constraint.get(field)
        is_right = value in allowed or (optional and value is None)
        return [] if is_right else [unsupported(f"{path}.{field}", value or "", allowed)]

    return check


def _skew(constraint: Document, path: str) -> list[FieldError]:
    skew = constraint.get("maxSkew", 0)
    return [] if skew > 0 else [invalid_value(f"{path}.maxSkew", skew, _POSITIVE)]


def _topology_key(constraint: Document, path: str) -> list[FieldError]:
    return [] if constraint.get("topologyKey") else [required(f"{path}.topologyKey", "can not be empty")]


def _fewest_domains(constraint: Document, path: str) -> list[FieldError]:
    fewest, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable", "")
    if fewest is None:
        return []
    why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
    complaints = ((fewest <= 0, _POSITIVE), (action != "DoNotSchedule", why))
    return [invalid_value(f"{path}.minDomains", fewest, sentence) for applies, sentence in complaints if applies]


def _repeated(constraints: list[Any]) -> Check:
    """Two constraints of one key and action would be one constraint; the earlier of the two is named."""

    def pair(constraint: Document) -> tuple[str, str]:
        return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")

    last = {pair(constraint): constraint for constraint in constraints}

    def check(constraint: Document, path: str) -> list[FieldError]:
        key, action = pair(constraint)
        here = f"{path}.{{topologyKey, whenUnsatisfiable}}"
        return [] if last[key, action] is constraint else [duplicate(here, f"{{{key}, {action}}}")]

    return check


def _spread_selector(constraint: Document, path: str) -> list[FieldError]:
    return check_label_selector(constraint.get("labelSelector"), f"{path}.labelSelector")


def check_spread(constraints: list[Any], path: str) -> list[FieldError]:
    if not constraints:
        return []
    return _each(
        constraints,
        path,
        _skew,
        _topology_key,
        _one_of("whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway"),
        _repeated(constraints),
        _fewest_domains,
        _one_of("nodeAffinityPolicy", "Honor", "Ignore", optional=True),
        _one_of("nodeTaintsPolicy", "Honor", "Ignore", optional=True),
        _spread_selector,
    )


# Gates


def check_gates(gates: list[Any], path: str) -> list[FieldError]:
    names = [gate.get("name", "") for gate in gates]
    by_place = (
        (broken(qualified_name, name, here), [duplicate(here, name)] if name in names[:index] else [])
        for index, name in enumerate(names)
        for here in [f"{path}[{index}]"]
    )
    return list(chain.from_iterable(chain.from_iterable(by_place)))
