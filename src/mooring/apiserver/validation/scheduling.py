"""Rules of what a pod says about where it may run: selectors, affinity, tolerations, spreading, gates."""

from __future__ import annotations

import re
from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import FieldError, duplicate, forbidden_field, invalid_value, required, unsupported
from mooring.objects.names import label_value, qualified_name

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_IN_NOT_IN = "must be specified when `operator` is 'In' or 'NotIn'"
_EXISTS = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def _key(key: Any, path: str) -> list[FieldError]:
    return [invalid_value(path, key or "", sentence) for sentence in qualified_name(key or "")]


def check_label_selector(selector: Any, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    if not selector:
        return wrong
    for key, value in (selector.get("matchLabels") or {}).items():
        wrong += _key(key, f"{path}.matchLabels")
        wrong += [invalid_value(f"{path}.matchLabels", value, sentence) for sentence in label_value(value)]
    for index, part in enumerate(items_of(selector, "matchExpressions")):
        here = f"{path}.matchExpressions[{index}]"
        values = items_of(part, "values")
        match part.get("operator", ""):
            case "In" | "NotIn":
                if not values:
                    wrong.append(required(f"{here}.values", _IN_NOT_IN))
            case "Exists" | "DoesNotExist":
                if values:
                    wrong.append(forbidden_field(f"{here}.values", _EXISTS))
            case other:
                wrong.append(invalid_value(f"{here}.operator", other, "not a valid selector operator"))
        wrong += _key(part.get("key"), f"{here}.key")
        for place, value in enumerate(values):
            wrong += [invalid_value(f"{here}.values[{place}]", value, sentence) for sentence in label_value(value)]
    return wrong


def check_tolerations(tolerations: list[Any], path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            wrong += _key(key, f"{here}.key")
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            wrong.append(invalid_value(f"{here}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            wrong.append(invalid_value(f"{here}.effect", effect, why))
        if operator in ("", "Equal"):
            wrong += [invalid_value(f"{here}.operator", value, sentence) for sentence in label_value(value)]
        elif operator == "Exists":
            if value:
                why = "value must be empty when `operator` is 'Exists'"
                wrong.append(invalid_value(f"{here}.operator", value, why))
        elif operator in ("Lt", "Gt"):
            if not re.fullmatch(r"0|-?[1-9][0-9]*", value):
                wrong.append(invalid_value(f"{here}.value", value, "must be a decimal integer"))
        else:
            wrong.append(unsupported(f"{here}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in TAINT_EFFECTS:
            wrong.append(unsupported(f"{here}.effect", effect, TAINT_EFFECTS))
    return wrong


def check_node_selector_term(term: Document, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    for index, part in enumerate(items_of(term, "matchExpressions")):
        here = f"{path}.matchExpressions[{index}]"
        values = items_of(part, "values")
        match part.get("operator", ""):
            case "In" | "NotIn":
                if not values:
                    wrong.append(required(f"{here}.values", _IN_NOT_IN))
            case "Exists" | "DoesNotExist":
                if values:
                    wrong.append(forbidden_field(f"{here}.values", _EXISTS))
            case "Gt" | "Lt":
                if len(values) != 1:
                    why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                    wrong.append(required(f"{here}.values", why))
            case other:
                wrong.append(invalid_value(f"{here}.operator", other, "not a valid selector operator"))
        wrong += _key(part.get("key"), f"{here}.key")
        for place, value in enumerate(values):
            wrong += [invalid_value(f"{here}.values[{place}]", value, sentence) for sentence in label_value(value)]
    for index, part in enumerate(items_of(term, "matchFields")):
        here = f"{path}.matchFields[{index}]"
        if part.get("operator") not in ("In", "NotIn"):
            wrong.append(invalid_value(f"{here}.operator", part.get("operator", ""), "not a valid selector operator"))
        elif len(items_of(part, "values")) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            wrong.append(required(f"{here}.values", why))
        if part.get("key") != "metadata.name":
            wrong.append(invalid_value(f"{here}.key", part.get("key", ""), "not a valid field selector key"))
    return wrong


def check_node_selector(selector: Document, path: str) -> list[FieldError]:
    terms = items_of(selector, "nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        error
        for index, term in enumerate(terms)
        for error in check_node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]")
    ]


def check_affinity(affinity: Any, path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    if not affinity:
        return wrong
    hard, soft = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    if node := affinity.get("nodeAffinity"):
        if node.get(hard) is not None:
            wrong += check_node_selector(node[hard], f"{path}.nodeAffinity.{hard}")
        for index, term in enumerate(items_of(node, soft)):
            here = f"{path}.nodeAffinity.{soft}[{index}]"
            wrong += _weight(term, here)
            wrong += check_node_selector_term(term.get("preference") or {}, f"{here}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(items_of(terms, hard)):
            wrong += _pod_term(term, f"{path}.{kind}.{hard}[{index}]")
        for index, weighted in enumerate(items_of(terms, soft)):
            here = f"{path}.{kind}.{soft}[{index}]"
            wrong += _weight(weighted, here)
            wrong += _pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")
    return wrong


def _weight(term: Document, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term(term: Document, path: str) -> list[FieldError]:
    wrong = check_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    wrong += check_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    if not term.get("topologyKey"):
        wrong.append(required(f"{path}.topologyKey", "can not be empty"))
        return wrong
    return wrong + _key(term["topologyKey"], f"{path}.topologyKey")


def check_spread(constraints: list[Any], path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        action = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            wrong.append(invalid_value(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not key:
            wrong.append(required(f"{here}.topologyKey", "can not be empty"))
        else:
            wrong += _key(key, f"{here}.topologyKey")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            wrong.append(unsupported(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        if (key, action) in seen:
            wrong.append(duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        seen.add((key, action))
        least = constraint.get("minDomains")
        if least is not None:
            if least <= 0:
                wrong.append(invalid_value(f"{here}.minDomains", least, "must be greater than 0"))
            if action != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                wrong.append(invalid_value(f"{here}.minDomains", least, why))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy) not in (None, "Honor", "Ignore"):
                wrong.append(unsupported(f"{here}.{policy}", constraint[policy], ("Honor", "Ignore")))
        wrong += check_label_selector(constraint.get("labelSelector"), f"{here}.labelSelector")
    return wrong


def check_gates(gates: list[Any], path: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        wrong += [invalid_value(f"{path}[{index}]", name, sentence) for sentence in qualified_name(name)]
        if name in seen:
            wrong.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return wrong
