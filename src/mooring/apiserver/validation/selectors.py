"""Validation of selectors: operator, key and values of requirements, for labels, node labels and node fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.apiserver.documents import Document, items_of
from mooring.apiserver.status import FieldError, forbidden_field, invalid_value, required
from mooring.apiserver.validation.checks import broken, each
from mooring.objects.names import NameRule, dns_subdomain, label_value, qualified_name


@dataclass(frozen=True)
class _Operand:
    """How many values an operator takes, and the error where there are more or fewer."""

    accepts: Callable[[int], bool]
    refusal: Callable[[str, str], FieldError]
    sentence: str


_SOME = _Operand(lambda count: count > 0, required, "must be specified when `operator` is 'In' or 'NotIn'")
_NO = _Operand(
    lambda count: count == 0, forbidden_field, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
)
_A_NUMBER = _Operand(
    lambda count: count == 1, required, "must be specified single value when `operator` is 'Lt' or 'Gt'"
)
_A_NAME = _Operand(
    lambda count: count == 1,
    required,
    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
)


@dataclass(frozen=True)
class Requirements:
    """The requirements that one kind of selector supports."""

    operators: Mapping[str, _Operand]
    key_rule: NameRule = qualified_name
    value_rule: NameRule = label_value

    def check(self, requirements: list[Any], path: str) -> list[FieldError]:
        return each(requirements, path, self._check_one)

    def _check_one(self, requirement: Document, path: str) -> list[FieldError]:
        operator, key = requirement.get("operator", ""), requirement.get("key") or ""
        values = items_of(requirement, "values")
        operand = self.operators.get(operator)
        errors: list[FieldError] = []
        if operand is None:
            errors.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
        elif not operand.accepts(len(values)):
            errors.append(operand.refusal(f"{path}.values", operand.sentence))
        errors += broken(self.key_rule, key, f"{path}.key")
        for index, value in enumerate(values):
            errors += broken(self.value_rule, value, f"{path}.values[{index}]")
        return errors


def _node_field(key: str) -> list[str]:
    return [] if key == "metadata.name" else ["not a valid field selector key"]


LABELS = Requirements({"In": _SOME, "NotIn": _SOME, "Exists": _NO, "DoesNotExist": _NO})
NODE_LABELS = Requirements({**LABELS.operators, "Gt": _A_NUMBER, "Lt": _A_NUMBER})
NODE_FIELDS = Requirements({"In": _A_NAME, "NotIn": _A_NAME}, key_rule=_node_field, value_rule=dns_subdomain)


def check_label_selector(selector: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        errors += broken(qualified_name, key, f"{path}.matchLabels")
        errors += broken(label_value, value, f"{path}.matchLabels")
    return errors + LABELS.check(items_of(selector or {}, "matchExpressions"), f"{path}.matchExpressions")


def check_node_selector_term(term: Document, path: str) -> list[FieldError]:
    return [
        error
        for field, requirements in (("matchExpressions", NODE_LABELS), ("matchFields", NODE_FIELDS))
        for error in requirements.check(items_of(term, field), f"{path}.{field}")
    ]


def check_node_selector(selector: Document, path: str) -> list[FieldError]:
    terms = items_of(selector, "nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return each(terms, f"{path}.nodeSelectorTerms", check_node_selector_term)
