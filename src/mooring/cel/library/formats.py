"""Named formats: `format.dns1123Label().validate(name)` gives the reasons why a text is not of the format."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from mooring.cel import types
from mooring.cel.declarations import Function, function, member, overload
from mooring.cel.library.urls import BadUrl, parsed_url
from mooring.cel.text import quoted
from mooring.cel.types import STRING, list_of, optional_of
from mooring.cel.values import NONE, Opaque, Optional

FORMAT_TYPE = types.struct("kubernetes.NamedFormat")

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_ALPHANUMERIC = "and must start and end with an alphanumeric character"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


def _pattern_reason(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


_NO_LABEL = _pattern_reason(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC}",
    _LABEL,
    "my-name",
    "123-abc",
)
_NO_SUBDOMAIN = _pattern_reason(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ALPHANUMERIC}",
    _SUBDOMAIN,
    "example.com",
)
_NO_OLD_LABEL = _pattern_reason(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _OLD_LABEL,
    "my-name",
    "abc-123",
)
_NO_KEY = _pattern_reason(
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC}", _KEY, "MyName", "my.name", "123-abc"
)
_NO_VALUE = _pattern_reason(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def _too_long(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} characters"] if len(text.encode()) > most else []


def _label(text: str) -> list[str]:
    reasons = _too_long(text, 63)
    if not re.fullmatch(_LABEL, text):
        reasons.append("must not contain dots" if re.fullmatch(_SUBDOMAIN, text) else _NO_LABEL)
    return reasons


def _subdomain(text: str) -> list[str]:
    return _too_long(text, 253) + ([] if re.fullmatch(_SUBDOMAIN, text) else [_NO_SUBDOMAIN])


def _old_label(text: str) -> list[str]:
    return _too_long(text, 63) + ([] if re.fullmatch(_OLD_LABEL, text) else [_NO_OLD_LABEL])


def _as_prefix(validate: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A prefix may end in a dash: something follows."""

    def validate_prefix(text: str) -> list[str]:
        return validate(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return validate_prefix


def _qualified_name(text: str) -> list[str]:
    *prefix, name = text.split("/")
    reasons: list[str] = []
    if len(prefix) > 1:
        return [
            f"a valid label key {_NO_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if prefix:
        found = _subdomain(prefix[0]) if prefix[0] else ["must be non-empty"]
        reasons += [f"prefix part {each}" for each in found]
    if not name:
        reasons.append("name part must be non-empty")
    reasons += [f"name part {each}" for each in _too_long(name, 63)]
    return reasons if re.fullmatch(_KEY, name) else [*reasons, f"name part {_NO_KEY}"]


def _label_value(text: str) -> list[str]:
    return _too_long(text, 63) + ([] if re.fullmatch(_VALUE, text) else [_NO_VALUE])


def _uri(text: str) -> list[str]:
    try:
        parsed_url(text)
    except BadUrl as problem:
        return [f"parse {quoted(text)}: {problem}"]
    return []


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    if text.startswith("0000"):
        text = f"0004{text[4:]}"  # the year 0 is a leap year, and Python has none
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    time = time.partition("t")[0]
    match = _TIME.fullmatch(time)
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _test(passes: Callable[[str], bool], reason: str) -> Callable[[str], list[str]]:
    return lambda text: [] if passes(text) else [reason]


class Format(Opaque):
    """A format by name. `pattern_size` is what validating costs per character."""

    __slots__ = ("name", "pattern_size", "validate")
    cel_type = FORMAT_TYPE

    def __init__(self, name: str, pattern_size: int, validate: Callable[[str], list[str]]) -> None:
        self.name, self.pattern_size, self.validate = name, pattern_size, validate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


FORMATS: dict[str, Format] = {
    "dns1123Label": Format("DNS1123Label", 30, _label),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": Format("DNS1035Label", 30, _old_label),
    "qualifiedName": Format("QualifiedName", 60, _qualified_name),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _as_prefix(_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _as_prefix(_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _as_prefix(_old_label)),
    "labelValue": Format("LabelValue", 40, _label_value),
    "uri": Format("URI", 1103, _uri),
    "uuid": Format("uuid", 70, _test(lambda text: _UUID.fullmatch(text) is not None, "does not match the UUID format")),
    "byte": Format("byte", 84, _test(lambda text: _BASE64.fullmatch(text) is not None, "invalid base64")),
    "date": Format("date", 71, _test(_is_date, "invalid date")),
    "datetime": Format("datetime", 71, _test(_is_datetime, "invalid datetime")),
}


def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _validate(of: Format, text: str) -> Optional:
    reasons = of.validate(text)
    return Optional(reasons) if reasons else NONE


def _constant(of: Format) -> Callable[[], Format]:
    return lambda: of


FUNCTIONS: list[Function] = [
    function("validate", member("format-validate", (FORMAT_TYPE, STRING), optional_of(list_of(STRING)), _validate)),
    function("format.named", overload("format-named", (STRING,), optional_of(FORMAT_TYPE), _named)),
    *(
        function(f"format.{name}", overload(f"format.{name}", (), FORMAT_TYPE, _constant(of)))
        for name, of in FORMATS.items()
    ),
]
