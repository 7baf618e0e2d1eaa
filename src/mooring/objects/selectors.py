"""Label selectors: as objects carry them, and as text on a query string.

An absent selector matches nothing and an empty one everything; callers decide which of the two they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mooring.objects.names import label_value, qualified_name
from mooring.objects.read_only import EMPTY, seal
from mooring.objects.wire import Wire

Labels = Mapping[str, str]

Requirement = tuple[str, str, tuple[str, ...]]
"""Key, operator (In, NotIn, Exists, DoesNotExist, Gt, Lt), values: hashable, so that it can be the key of a count."""


class LabelSelectorRequirement(Wire):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Wire):
    match_labels: Mapping[str, str] = EMPTY
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def __post_init__(self) -> None:
        seal(self, "match_labels")

    def matches(self, labels: Labels) -> bool:
        """Whether all parts hold; an empty selector matches every object."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement_matches(part.key, part.operator, part.values, labels) for part in self.match_expressions
        )

    def parts(self) -> Iterator[tuple[str, str, Sequence[str]]]:
        """The same as requirements, as they are written."""
        for key, value in self.match_labels.items():
            yield key, "In", (value,)
        for part in self.match_expressions:
            yield part.key, part.operator, part.values

    def requirements(self) -> tuple[Requirement, ...]:
        """The same as sorted requirements: equal selectors give equal tuples."""
        return tuple(sorted((key, operator, tuple(sorted(values))) for key, operator, values in self.parts()))


def requirement_matches(key: str, operator: str, values: Sequence[str], labels: Labels) -> bool:
    """One requirement of a label selector or of a node selector term. What cannot be parsed does not match."""
    found = labels.get(key)
    match operator:
        case "In":
            return found is not None and found in values
        case "NotIn":
            return found is None or found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt":
            ours, bound = integer(found), integer(values[0]) if len(values) == 1 else None
            if ours is None or bound is None:
                return False
            return ours > bound if operator == "Gt" else ours < bound
    return False


_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
"""Python refuses to convert thousands of digits; no 64-bit number has more than these behind its zeros."""


def integer(text: str | None) -> int | None:
    """As Go's ParseInt: digits with a sign, 64 bits."""
    match = _INTEGER.fullmatch(text) if text is not None else None
    if match is None:
        return None
    value = int(match[1] + match[2])
    return value if -(2**63) <= value < 2**63 else None


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def mistake_in(selector: LabelSelector | None) -> str | None:
    """Why the selector cannot be read, in kube-scheduler's words; None: it can be."""
    if selector is None:
        return None
    for key, value in selector.match_labels.items():
        if wrong := requirement_mistakes(key, "In", [value]):
            return one_text(wrong)
    for part in selector.match_expressions:
        if part.operator not in _OPERATORS:
            return f"{_quoted(part.operator)} is not a valid label selector operator"
        if wrong := requirement_mistakes(part.key, part.operator, part.values):
            return one_text(wrong)
    return None


def one_text(problems: Sequence[str]) -> str:
    """Several errors as Go's aggregate shows them: each once, in brackets if there is more than one."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def requirement_mistakes(key: str, operator: str, values: Sequence[str], path: str = "") -> list[str]:
    """What is wrong with one requirement of a known operator, in kube-scheduler's words; `path` leads to it."""
    wrong = []
    shown = msgspec.json.encode(values).decode() if values else "null"
    if sentences := qualified_name(key):
        wrong.append(f"{path}key: Invalid value: {_quoted(key)}: {'; '.join(sentences)}")
    if operator in ("In", "NotIn") and not values:
        wrong.append(f"{path}values: Invalid value: {shown}: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        wrong.append(f"{path}values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            wrong.append(
                f"{path}values: Invalid value: {shown}: for 'Gt', 'Lt' operators, exactly one value is required"
            )
        whole = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong += [
            f"{path}values[{at}]: Invalid value: {_quoted(value)}: {whole}"
            for at, value in enumerate(values)
            if integer(value) is None
        ]
    for at, value in enumerate(values):
        if sentences := label_value(value):
            wrong.append(f"{path}values[{at}][{key}]: Invalid value: {_quoted(value)}: {'; '.join(sentences)}")
    return wrong


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


class BadSelector(ValueError):
    """Selector text that cannot be understood."""


# Possessive, so that no run of spaces is divided in every possible way.
_SET = re.compile(r"\s*+(\S++)\s++(in|notin)\s*+\(([^)]*+)\)\s*+")
_EQUAL = re.compile(r"\s*+([^\s=!<>]++)\s*+(==|=|!=|<|>)\s*+([^\s=!<>]*+)\s*+")
_EXISTS = re.compile(r"\s*+(!?)\s*+([^\s=!<>(),]++)\s*+")


def parse_selector(text: str) -> list[Requirement]:
    """The requirements of `a=b,c!=d,e in (f,g),h,!i`, as kubectl's `-l` sends them."""
    requirements: list[Requirement] = []
    for part in _parts(text) if text.strip() else []:
        if match := _SET.fullmatch(part):
            values = tuple(value.strip() for value in match[3].split(","))
            requirements.append((match[1], "In" if match[2] == "in" else "NotIn", values))
        elif match := _EQUAL.fullmatch(part):
            operator = {"!=": "NotIn", ">": "Gt", "<": "Lt"}
            requirements.append((match[1], operator.get(match[2], "In"), (match[3],)))
        elif match := _EXISTS.fullmatch(part):
            requirements.append((match[2], "DoesNotExist" if match[1] else "Exists", ()))
        else:
            raise BadSelector(f'unable to parse requirement "{part}" of selector "{text}"')
        _check(*requirements[-1])
    return requirements


def _parts(text: str) -> Iterator[str]:
    """Between the commas that stand in no parentheses."""
    start = 0
    depth = 0
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth = max(depth - 1, 0)
        elif character == "," and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _check(key: str, operator: str, values: tuple[str, ...]) -> None:
    """Reject what no label can be: it would match nothing, without a hint why."""
    wrong = [f'Invalid value: "{key}": {sentence}' for sentence in qualified_name(key)]
    for index, value in enumerate(values):
        if operator in ("Gt", "Lt") and integer(value) is None:
            wrong.append(
                f"values[{index}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        wrong += [f'values[{index}][{key}]: Invalid value: "{value}": {sentence}' for sentence in label_value(value)]
    if wrong:
        raise BadSelector(f"unable to parse requirement: {', '.join(wrong)}")


def selects(requirements: Sequence[Requirement], labels: Labels) -> bool:
    """Whether all requirements hold. Called for every pod that is placed, and for all of them for a new selection."""
    for key, operator, values in requirements:
        if operator == "In":
            if labels.get(key) not in values:
                return False
        elif not requirement_matches(key, operator, values, labels):
            return False
    return True
