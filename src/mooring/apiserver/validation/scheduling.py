"""Validation of scheduling directives: tolerations, affinity, topology spread constraints, scheduling gates."""

from __future__ import annotations

import re
from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import FieldError, duplicate, invalid_value, unsupported
from mooring.apiserver.validation.checks import Check, broken, each, filled, named, one_of, repeats
from mooring.apiserver.validation.selectors import (
    check_label_selector,
    check_node_selector,
    check_node_selector_term,
)
from mooring.objects.names import NameRule, label_value, qualified_name

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
HARD = "requiredDuringSchedulingIgnoredDuringExecution"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
_POSITIVE = "must be greater than zero"
_HAS_TOPOLOGY_KEY, _NAMES_TOPOLOGY_KEY = filled("topologyKey", "can not be empty"), named("topologyKey", qualified_name)


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
    rule, blamed = _VALUE_RULES[operator]
    return broken(rule, toleration.get("value", ""), f"{path}.{blamed}")


def check_tolerations(tolerations: list[Any], path: str) -> list[FieldError]:
    return each(
        tolerations,
        path,
        _tolerated_key,
        _tolerated_time,
        _tolerated_value,
        one_of("effect", *TAINT_EFFECTS, optional=True),
    )


# Affinity


def _weight(term: Document, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _inner(field: str, check: Check) -> Check:
    """A check of what a weighted term wraps."""
    return lambda term, path: check(term.get(field) or {}, f"{path}.{field}")


def _pod_term(term: Document, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        errors += check_label_selector(term.get(field), f"{path}.{field}")
    return errors + (_HAS_TOPOLOGY_KEY(term, path) or _NAMES_TOPOLOGY_KEY(term, path))


def check_affinity(affinity: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not affinity:
        return errors
    node = affinity.get("nodeAffinity") or {}
    if node.get(HARD) is not None:
        errors += check_node_selector(node[HARD], f"{path}.nodeAffinity.{HARD}")
    preference = _inner("preference", check_node_selector_term)
    errors += each(items_of(node, SOFT), f"{path}.nodeAffinity.{SOFT}", _weight, preference)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        errors += each(items_of(terms, HARD), f"{path}.{kind}.{HARD}", _pod_term)
        errors += each(items_of(terms, SOFT), f"{path}.{kind}.{SOFT}", _weight, _inner("podAffinityTerm", _pod_term))
    return errors


# Spreading


def _skew(constraint: Document, path: str) -> list[FieldError]:
    skew = constraint.get("maxSkew", 0)
    return [] if skew > 0 else [invalid_value(f"{path}.maxSkew", skew, _POSITIVE)]


def _fewest_domains(constraint: Document, path: str) -> list[FieldError]:
    fewest, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable", "")
    if fewest is None:
        return []
    why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
    complaints = ((fewest <= 0, _POSITIVE), (action != "DoNotSchedule", why))
    return [invalid_value(f"{path}.minDomains", fewest, sentence) for applies, sentence in complaints if applies]


def _kind_of_spread(constraint: Document) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _spread_twice(constraint: Document, path: str) -> FieldError:
    key, action = _kind_of_spread(constraint)
    return duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")


def _spread_selector(constraint: Document, path: str) -> list[FieldError]:
    return check_label_selector(constraint.get("labelSelector"), f"{path}.labelSelector")


def check_spread(constraints: list[Any], path: str) -> list[FieldError]:
    if not constraints:
        return []
    return each(
        constraints,
        path,
        _skew,
        _HAS_TOPOLOGY_KEY,
        one_of("whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway"),
        repeats(constraints[::-1], _kind_of_spread, _spread_twice),  # upstream names the earlier of the two
        _fewest_domains,
        one_of("nodeAffinityPolicy", "Honor", "Ignore", optional=True),
        one_of("nodeTaintsPolicy", "Honor", "Ignore", optional=True),
        _spread_selector,
    )


# Gates


def _gate_name(gate: Document, path: str) -> list[FieldError]:
    return broken(qualified_name, gate.get("name", ""), path)


def _gate_twice(gate: Document, path: str) -> FieldError:
    return duplicate(path, gate.get("name", ""))


def check_gates(gates: list[Any], path: str) -> list[FieldError]:
    return each(gates, path, _gate_name, repeats(gates, lambda gate: gate.get("name", ""), _gate_twice))
