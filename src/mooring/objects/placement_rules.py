"""The rules by which a pod's spec admits or avoids a node: node selectors, affinity terms, tolerations.

Several plugins and the tallies read them, so they stand with the objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from mooring.objects.core import NodeSelector, NodeSelectorTerm, Pod, Taint, Toleration
from mooring.objects.selectors import Labels, requirement_matches, requirement_mistakes

DO_NOT_SCHEDULE = ("NoSchedule", "NoExecute")
"""The effects that keep a pod off a node."""


NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")


def term_matches(term: NodeSelectorTerm, name: str | None, labels: Labels) -> bool:
    """One term: all its expressions and fields hold. One that is empty or cannot be read matches nothing.

    Without a name, field terms are ignored.
    """
    if not is_readable(term):
        return False
    return all(
        requirement_matches(part.key, part.operator, part.values, labels) for part in term.match_expressions
    ) and (name is None or fields_match(term, name))


def fields_match(term: NodeSelectorTerm, name: str) -> bool:
    """The half of a readable term that is about the node's name, the one field a node has."""
    return all(
        ((name if part.key == "metadata.name" else "") == part.values[0]) is (part.operator == "In")
        for part in term.match_fields
    )


def is_readable(term: NodeSelectorTerm) -> bool:
    """Whether the term is not empty and all of it can be read."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_is_readable(part.key, part.operator, tuple(part.values)) for part in term.match_expressions) and all(
        part.operator in FIELD_OPERATORS and len(part.values) == 1 for part in term.match_fields
    )


@lru_cache(maxsize=4096)
def _is_readable(key: str, operator: str, values: tuple[str, ...]) -> bool:
    return operator in NODE_OPERATORS and not requirement_mistakes(key, operator, values)


def term_mistakes(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    """What cannot be read of a term, in kube-scheduler's words; `path` leads to it."""
    for at, part in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{at}]."
        if part.operator in NODE_OPERATORS:
            yield from requirement_mistakes(part.key, part.operator, part.values, where)
        else:
            yield _unsupported(where, part.operator, NODE_OPERATORS)
    for at, part in enumerate(term.match_fields):
        where = f"{path}.matchFields[{at}]."
        if part.operator not in FIELD_OPERATORS:
            yield _unsupported(where, part.operator, FIELD_OPERATORS)
        elif len(part.values) != 1:
            shown = msgspec.json.encode(part.values).decode() if part.values else "null"
            yield f"{where}values: Invalid value: {shown}: must have one element"


def _unsupported(path: str, operator: str, known: Sequence[str]) -> str:
    choices = ", ".join(f'"{each}"' for each in known)
    return f"{path}operator: Unsupported value: {msgspec.json.encode(operator).decode()}: supported values: {choices}"


def selector_matches(selector: NodeSelector, name: str | None, labels: Labels) -> bool:
    """Any term will do; no terms match nothing."""
    return any(term_matches(term, name, labels) for term in selector.node_selector_terms)


def required_node_selector(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def admits(pod: Pod, name: str, labels: Labels) -> bool:
    """Whether the pod's nodeSelector and required node affinity let it onto the node."""
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = required_node_selector(pod)
    return required is None or selector_matches(required, name, labels)


def tolerates(toleration: Toleration, taint: Taint, *, compare_numbers: bool = False) -> bool:
    """Whether this toleration covers this taint. An empty key covers all keys, an empty effect all effects.

    `compare_numbers` (the gate TaintTolerationComparisonOperators) lets Gt and Lt cover taints whose value is a
    greater or a smaller number than the toleration's.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt" if compare_numbers:
            ours, bound = _whole_number(taint.value), _whole_number(toleration.value)
            if ours is None or bound is None:
                return False
            return ours > bound if toleration.operator == "Gt" else ours < bound
    return False


def _whole_number(text: str) -> int | None:
    """A number of 64 bits, written in the one way: no "+", no zeros in front."""
    if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: Sequence[str] = DO_NOT_SCHEDULE,
    *,
    compare_numbers: bool = False,
) -> Taint | None:
    """The first taint with one of these effects that nothing tolerates."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(toleration, taint, compare_numbers=compare_numbers) for toleration in tolerations
        ):
            return taint
    return None


FEW_TOLERATIONS = 8


class Tolerations:
    """Many tolerations at once. Means what `tolerates` means, in a few lookups, however many they are."""

    __slots__ = ("_equal", "_exist", "_few", "_greatest", "_least")

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._few = tolerations if len(tolerations) <= FEW_TOLERATIONS else None
        """To go through a few takes less time than to read them into tables."""
        if self._few is not None:
            return
        self._equal: set[tuple[str, str, str]] = set()
        self._exist: set[tuple[str, str]] = set()
        self._least: dict[tuple[str, str], int] = {}
        """By key and effect the lowest bound of `Gt`: what is above another is above this."""
        self._greatest: dict[tuple[str, str], int] = {}
        for toleration in tolerations:
            place = (toleration.key, toleration.effect)
            match toleration.operator:
                case "" | "Equal":
                    self._equal.add((toleration.key, toleration.value, toleration.effect))
                case "Exists":
                    self._exist.add(place)
                case "Gt" if (bound := _whole_number(toleration.value)) is not None:
                    self._least[place] = min(bound, self._least.get(place, bound))
                case "Lt" if (bound := _whole_number(toleration.value)) is not None:
                    self._greatest[place] = max(bound, self._greatest.get(place, bound))

    def __eq__(self, other: object) -> bool:
        """Whether they cover the same, as far as that is known without reading more than the two."""
        if not isinstance(other, Tolerations):
            return NotImplemented
        if self._few is not None or other._few is not None:
            return self._few == other._few
        return (self._equal, self._exist, self._least, self._greatest) == (
            other._equal,
            other._exist,
            other._least,
            other._greatest,
        )

    __hash__ = None  # type: ignore[assignment]

    def cover(self, taint: Taint, *, compare_numbers: bool = False) -> bool:
        """Whether one of them tolerates the taint."""
        if self._few is not None:
            return any(tolerates(each, taint, compare_numbers=compare_numbers) for each in self._few)
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._exist or (key, taint.value, effect) in self._equal:
                    return True
                if compare_numbers and self._compares(taint.value, (key, effect)):
                    return True
        return False

    def _compares(self, value: str, place: tuple[str, str]) -> bool:
        least, greatest = self._least.get(place), self._greatest.get(place)
        if (least is None and greatest is None) or (number := _whole_number(value)) is None:
            return False
        return (least is not None and number > least) or (greatest is not None and number < greatest)

    def first_uncovered(self, taints: Iterable[Taint], *, compare_numbers: bool = False) -> Taint | None:
        """The first taint that keeps pods off a node and that nothing tolerates."""
        for taint in taints:
            if taint.effect in DO_NOT_SCHEDULE and not self.cover(taint, compare_numbers=compare_numbers):
                return taint
        return None


NO_TOLERATIONS = Tolerations(())


def tolerations_of(pod: Pod) -> Tolerations:
    return pod.tolerations if pod.spec.tolerations else NO_TOLERATIONS
