"""Validation of conditions as most kinds have them (metav1.Condition)."""

from __future__ import annotations

import re

from mooring.apiserver.documents import Document
from mooring.apiserver.status import FieldError, duplicate, invalid_value, required, too_long, unsupported
from mooring.objects.names import qualified_name

STATUSES = ("False", "True", "Unknown")
LONGEST_REASON, LONGEST_MESSAGE = 1024, 32 * 1024
_REASON_FORMAT = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON = re.compile(_REASON_FORMAT)
REASON_SENTENCE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric"
    " characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or"
    f" 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON_FORMAT}')"
)


def check_conditions(conditions: list[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    types: set[str] = set()
    for at, condition in enumerate(conditions):
        type_name = condition.get("type") or ""
        if type_name in types:
            errors.append(duplicate(f"{path}[{at}].type", type_name))
        types.add(type_name)
        errors += _check_condition(condition, f"{path}[{at}]")
    return errors


def _check_condition(condition: Document, path: str) -> list[FieldError]:
    type_name, status = condition.get("type") or "", condition.get("status") or ""
    errors = [invalid_value(f"{path}.type", type_name, sentence) for sentence in qualified_name(type_name)]
    if status not in STATUSES:
        errors.append(unsupported(f"{path}.status", status, STATUSES))
    if (generation := condition.get("observedGeneration") or 0) < 0:
        errors.append(invalid_value(f"{path}.observedGeneration", generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime"))
    reason = condition.get("reason") or ""
    if not reason:
        errors.append(required(f"{path}.reason"))
    else:
        if not _REASON.fullmatch(reason):
            errors.append(invalid_value(f"{path}.reason", reason, REASON_SENTENCE))
        if len(reason.encode()) > LONGEST_REASON:
            errors.append(too_long(f"{path}.reason", LONGEST_REASON))
    if len((condition.get("message") or "").encode()) > LONGEST_MESSAGE:
        errors.append(too_long(f"{path}.message", LONGEST_MESSAGE))
    return errors
