"""Label selectors: as objects carry them, and as text on a query string.

An absent selector matches nothing and an empty one everything; callers decide which of the two they hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mooring.objects.names import label_value, qualified_name
from mooring.objects.wire import Wire

Labels = Mapping[str, str]

Requirement = tuple[str, str, tuple[str, ...]]
"""Key, operator (In, NotIn, Exists, DoesNotExist, Gt, Lt), values: hashable, so that it can be the key of a count."""


class LabelSelectorRequirement(Wire):
    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Wire):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []

    def matches(self, labels: Labels) -> bool:
        """Whether all parts hold; an empty selector holds for everybody."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement_matches(part.key, part.operator, part.values, labels) for part in self.match_expressions
        )

    def requirements(self) -> tuple[Requirement, ...]:
        """The same as sorted requirements: equal selectors give equal tuples."""
        labels: list[Requirement] = [(key, "In", (value,)) for key, value in self.match_labels.items()]
        return tuple(
            sorted(labels + [(part.key, part.operator, tuple(sorted(part.values))) for part in self.match_expressions])
        )


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
            ours, bound = _integer(found), _integer(values[0]) if len(values) == 1 else None
            if ours is None or bound is None:
                return False
            return ours > bound if operator == "Gt" else ours < bound
    return False


def _integer(text: str | None) -> int | None:
    """As Go's ParseInt: digits with a sign, 64 bits."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class BadSelector(ValueError):
    """Selector text that cannot be understood."""


_SET = re.compile(r"^\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*([^\s=!<>]+)\s*(==|=|!=|<|>)\s*([^\s=!<>]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([^\s=!<>(),]+)\s*$")


def parse_selector(text: str) -> list[Requirement]:
    """The requirements of `a=b,c!=d,e in (f,g),h,!i`, as kubectl's `-l` sends them."""
    requirements: list[Requirement] = []
    for part in re.split(r",(?![^(]*\))", text) if text.strip() else []:
        if match := _SET.match(part):
            values = tuple(value.strip() for value in match[3].split(","))
            requirements.append((match[1], "In" if match[2] == "in" else "NotIn", values))
        elif match := _EQUAL.match(part):
            operator = {"!=": "NotIn", ">": "Gt", "<": "Lt"}
            requirements.append((match[1], operator.get(match[2], "In"), (match[3],)))
        elif match := _EXISTS.match(part):
            requirements.append((match[2], "DoesNotExist" if match[1] else "Exists", ()))
        else:
            raise BadSelector(f'unable to parse requirement "{part}" of selector "{text}"')
        _check(*requirements[-1])
    return requirements


def _check(key: str, operator: str, values: tuple[str, ...]) -> None:
    """Refuse what no label can be: it would match nothing, and nobody would know why."""
    wrong = [f'Invalid value: "{key}": {sentence}' for sentence in qualified_name(key)]
    for index, value in enumerate(values):
        if operator in ("Gt", "Lt") and _integer(value) is None:
            wrong.append(
                f"values[{index}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        wrong += [f'values[{index}][{key}]: Invalid value: "{value}": {sentence}' for sentence in label_value(value)]
    if wrong:
        raise BadSelector(f"unable to parse requirement: {', '.join(wrong)}")


def selects(requirements: Sequence[Requirement], labels: Labels) -> bool:
    return all(requirement_matches(key, operator, values, labels) for key, operator, values in requirements)
