"""Which objects a list or a watch selects: by namespace, label selector and field selector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mooring.apiserver.documents import Document
from mooring.apiserver.status import bad_request
from mooring.apiserver.strategies.base import FieldReader, text_at
from mooring.objects.selectors import BadSelector, parse_selector, requirement_matches

Test = Callable[[Document], bool]
COMMON: dict[str, FieldReader] = {
    "metadata.name": text_at("metadata", "name"),
    "metadata.namespace": text_at("metadata", "namespace"),
}


class SelectionPredicate:
    """A predicate of stored documents; without tests it selects everything in the namespace."""

    def __init__(self, namespace: str, tests: list[Test], name: str | None = None) -> None:
        self.namespace = namespace
        self.name = name
        self._tests = tests
        self.matches_everything = not tests and not namespace
        self.has_selectors = bool(tests)

    def __call__(self, document: Document) -> bool:
        if self.namespace and document["metadata"].get("namespace") != self.namespace:
            return False
        return all(test(document) for test in self._tests)


def parse_predicate(
    namespace: str, query: Mapping[str, str], fields: Mapping[str, FieldReader], name: str = ""
) -> SelectionPredicate:
    tests: list[Test] = []
    if labels := query.get("labelSelector"):
        tests.append(_label_test(labels))
    one = name
    if selector := query.get("fieldSelector"):
        for field, is_equal, value in split_field_selector(selector):
            read = fields.get(field) or COMMON.get(field)
            if read is None:
                raise bad_request(f"field label not supported: {field}")
            if field == "metadata.name" and is_equal:
                one = value
            tests.append(_field_test(read, is_equal, value))
    if name:
        tests.append(_field_test(COMMON["metadata.name"], True, name))
    return SelectionPredicate(namespace, tests, one or None)


def _label_test(text: str) -> Test:
    try:
        requirements = parse_selector(text)
    except BadSelector as mistake:
        raise bad_request(str(mistake)) from None

    def test(document: Document) -> bool:
        labels: Any = document["metadata"].get("labels") or {}
        return all(requirement_matches(key, operator, values, labels) for key, operator, values in requirements)

    return test


def _field_test(read: FieldReader, is_equal: bool, value: str) -> Test:
    if is_equal:
        return lambda document: read(document) == value
    return lambda document: read(document) != value


def split_field_selector(text: str) -> list[tuple[str, bool, str]]:
    """`a=b,c!=d` as (field, is equal, value); a backslash keeps `,` and `=` as part of a value."""
    parts: list[tuple[str, bool, str]] = []
    for term in _split_unescaped(text):
        if not term:
            continue
        for mark, is_equal in (("!=", False), ("==", True), ("=", True)):
            field, found, value = term.partition(mark)
            if found:
                parts.append((field, is_equal, value.replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\")))
                break
        else:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    return parts


def _split_unescaped(text: str) -> list[str]:
    terms, current, escaped = [], "", False
    for letter in text:
        if letter == "," and not escaped:
            terms.append(current)
            current = ""
        else:
            current += letter
        escaped = letter == "\\" and not escaped
    return [*terms, current]
