"""How names, labels and keys may look, with kube-apiserver's messages: each rule returns what is wrong, or nothing.

Results are cached, because the same few keys come with every object: read them, do not change them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

NameRule = Callable[[str], list[str]]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

LABEL_SENTENCE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_SENTENCE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS1035_SENTENCE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED_SENTENCE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_SENTENCE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _too_many_bytes(limit: int) -> str:
    """As `_too_long`, where upstream has moved to rules that count bytes: label keys and values."""
    return f"must be no more than {limit} bytes"


@lru_cache(maxsize=16_384)
def dns_label(name: str) -> list[str]:
    wrong = [] if len(name) <= 63 else [_too_long(63)]
    return wrong if _LABEL.fullmatch(name) else [*wrong, LABEL_SENTENCE]


@lru_cache(maxsize=16_384)
def dns_subdomain(name: str) -> list[str]:
    wrong = [] if len(name) <= 253 else [_too_long(253)]
    return wrong if _SUBDOMAIN.fullmatch(name) else [*wrong, SUBDOMAIN_SENTENCE]


def dns1035_label(name: str) -> list[str]:
    wrong = [] if len(name) <= 63 else [_too_long(63)]
    return wrong if _DNS1035.fullmatch(name) else [*wrong, DNS1035_SENTENCE]


def path_segment(name: str) -> list[str]:
    """Names that only have to fit into a URL (RBAC objects)."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in name]


@lru_cache(maxsize=16_384)
def qualified_name(key: str) -> list[str]:
    """A label key or resource name: an optional DNS prefix and a name."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {QUALIFIED_SENTENCE.removeprefix('name part ')} with an optional DNS subdomain prefix"
            " and '/' (e.g. 'example.com/MyName')"
        ]
    wrong: list[str] = []
    if slash:
        if not prefix:
            wrong.append("prefix part must be non-empty")
        else:
            wrong += [
                "prefix part " + sentence.replace(_too_long(253), _too_many_bytes(253))
                for sentence in dns_subdomain(prefix)
            ]
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        wrong.append("name part " + _too_many_bytes(63))
    if not _QUALIFIED.fullmatch(name):
        wrong.append(QUALIFIED_SENTENCE)
    return wrong


@lru_cache(maxsize=16_384)
def label_value(value: str) -> list[str]:
    wrong = [] if len(value.encode()) <= 63 else [_too_many_bytes(63)]
    return wrong if _VALUE.fullmatch(value) else [*wrong, VALUE_SENTENCE]
