"""A plugin's arguments, read by its one `Args` class: every mistake in them, each with its path and line.

msgspec stops at the first error, so the walk over the type is ours; msgspec then builds the value, and checks what the
walk does not know.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import inspect

from mooring.base.documents import Tree, misread
from mooring.base.durations import duration_seconds
from mooring.base.errors import did_you_mean
from mooring.base.foreign_code import described
from mooring.config.fields import unknown_field
from mooring.config.problems import Problems
from mooring.framework.args import Args, checked_mistakes
from mooring.framework.gates import FeatureGates

GROUP = "kubescheduler.config.k8s.io"
VERSIONS = ("v1", "v1beta3", "v1beta2", "v1beta1")

_GATED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "VolumeBinding": {"shape": ["StorageCapacityScoring"]},
    "DynamicResources": {
        "filterTimeout": ["DRASchedulerFilterTimeout"],
        "bindingTimeout": ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"],
    },
}
"""Plugin → field → the feature gates without which the field must not be given."""


_CHECKED_WHEN_BUILT = ("NodeResourcesFit",)
"""Where the profile does not use them, kube-scheduler does not validate their arguments; then there is only a
warning."""

_type_info = functools.cache(inspect.type_info)


def read_args(
    plugin: str, cls: type[Args], tree: Tree, gates: FeatureGates, problems: Problems, *, is_used: bool = True
) -> Args | None:
    """The arguments that `tree` holds, defaults filled in; None if there are mistakes, which are then reported."""
    before = problems.count
    if not isinstance(tree.value, dict | None):
        problems.error(tree, f"must be a mapping, got {tree.shown()}")
        return None
    check_header(plugin, tree, problems)
    fields = {name: part for name, part in tree.fields.items() if name not in ("apiVersion", "kind")}
    for name, needed in _GATED.get(plugin, {}).items():
        for gate in needed if name in fields else ():
            if not gates.on(gate):
                problems.error(fields[name], f"Forbidden: needs the feature gate {gate}, which is off")
    value = _Walk(problems).value(Tree(fields, tree.path, tree.line), _type_info(cls))
    if problems.count > before:
        return None
    try:
        args = msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        place = _place(tree, where.rstrip("`").removeprefix("."))
        problems.error(place, message)
        return None
    is_ignored = plugin in _CHECKED_WHEN_BUILT and not is_used
    _check_across_fields(args, tree, problems.warn if is_ignored else problems.error)
    return args if problems.count == before else None


def check_header(plugin: str, tree: Tree, problems: Problems) -> None:
    """Arguments may carry their own apiVersion and kind; these must be the plugin's."""
    kind, version = tree.get("kind"), tree.get("apiVersion")
    if kind is not None and kind.value not in ("", f"{plugin}Args"):
        problems.error(kind, f'has to match plugin args: must be "{plugin}Args", got {kind.shown()}')
    if version is not None and version.value not in [f"{GROUP}/{each}" for each in VERSIONS]:
        problems.error(version, f'must be "{GROUP}/v1", got {version.shown()}')


def _check_across_fields(args: Args, tree: Tree, report: Callable[[Tree, str], None]) -> None:
    try:
        for where, message in checked_mistakes(args):
            report(_place(tree, where), message)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the plugin author's code
        report(tree, f"{type(args).__name__}.mistakes raised {described(error)}")


def _place(tree: Tree, path: str) -> Tree:
    """The value at a path below, or where it would stand."""
    at, line = tree, tree.line
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(at.value, list) and step.isdigit():
            below = at.value[int(step)] if int(step) < len(at.value) else None
        else:
            below = at.fields.get(step)
        if below is None:
            break
        at, line = below, below.line or line
    return Tree(None, f"{tree.path}.{path}" if path else tree.path, line)


class _Walk:
    """Checks a tree against a type, and makes the plain value that msgspec converts."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def value(self, tree: Tree, wanted: inspect.Type) -> Any:
        match wanted:
            case inspect.Metadata():
                return self.value(tree, wanted.type)
            case inspect.UnionType():
                return self._union(tree, wanted)
            case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType():
                return self._struct(tree, wanted.fields)
            case inspect.DictType():
                return self._dict(tree, wanted)
            case (
                inspect.ListType()
                | inspect.VarTupleType()
                | inspect.SetType()
                | inspect.FrozenSetType()
                | inspect.CollectionType()
            ):
                return self._list(tree, wanted)
            case inspect.IntType() | inspect.FloatType():
                return self._number(tree, wanted)
            case inspect.StrType():
                return self._text(tree, wanted)
            case inspect.BoolType():
                return self._expect(tree, isinstance(tree.value, bool), "true or false")
            case inspect.TimeDeltaType():
                return self._duration(tree)
            case inspect.LiteralType():
                return self._choice(tree, wanted.values)
            case inspect.EnumType():
                return self._choice(tree, tuple(member.value for member in wanted.cls))
        return tree.plain()

    def _expect(self, tree: Tree, is_right: bool, what: str) -> Any:
        if not is_right:
            self._problems.error(tree, f"must be {what}, got {tree.shown()}")
        return tree.plain()

    def _union(self, tree: Tree, wanted: inspect.UnionType) -> Any:
        others = [each for each in wanted.types if not isinstance(each, inspect.NoneType)]
        # Of several types msgspec chooses; only the plain case "this or nothing" is walked.
        return self.value(tree, others[0]) if len(others) == 1 else tree.plain()

    def _struct(self, tree: Tree, fields: tuple[inspect.Field, ...]) -> Any:
        if not isinstance(tree.value, dict):
            return self._expect(tree, False, "a mapping")
        by_name = {field.encode_name: field for field in fields}
        value = {}
        for name, part in tree.value.items():
            if name not in by_name:
                unknown_field(part, name, set(by_name), self._problems)
            elif part.value is not None:
                value[name] = self.value(part, by_name[name].type)
        for name, field in by_name.items():
            if field.required and tree.get(name) is None:
                self._problems.error(tree, "Required value: it has no default", field=name)
        return value

    def _dict(self, tree: Tree, wanted: inspect.DictType) -> Any:
        if not isinstance(tree.value, dict):
            return self._expect(tree, False, "a mapping")
        self._size(tree, len(tree.value), wanted)
        return {key: self.value(part, wanted.value_type) for key, part in tree.value.items()}

    def _list(self, tree: Tree, wanted: Any) -> Any:
        if not isinstance(tree.value, list):
            return self._expect(tree, False, "a list")
        self._size(tree, len(tree.value), wanted)
        return [self.value(part, wanted.item_type) for part in tree.value]

    def _size(self, tree: Tree, size: int, wanted: Any) -> None:
        if wanted.min_length is not None and size < wanted.min_length:
            self._problems.error(tree, f"must have at least {wanted.min_length} item(s), got {size}")
        if wanted.max_length is not None and size > wanted.max_length:
            self._problems.error(tree, f"must have at most {wanted.max_length} item(s), got {size}")

    def _number(self, tree: Tree, wanted: inspect.IntType | inspect.FloatType) -> Any:
        types = int if isinstance(wanted, inspect.IntType) else (int, float)
        number = tree.value
        if isinstance(number, bool) or not isinstance(number, int | float) or not isinstance(number, types):
            return self._expect(tree, False, "a whole number" if types is int else "a number")
        low = wanted.ge if wanted.ge is not None else wanted.gt
        high = wanted.le if wanted.le is not None else wanted.lt
        too_low = (wanted.ge is not None and number < wanted.ge) or (wanted.gt is not None and number <= wanted.gt)
        too_high = (wanted.le is not None and number > wanted.le) or (wanted.lt is not None and number >= wanted.lt)
        if too_low or too_high:
            self._problems.error(tree, f"must be {_range(wanted, low, high)}, got {tree.shown()}")
        if wanted.multiple_of is not None and number % wanted.multiple_of:
            self._problems.error(tree, f"must be a multiple of {wanted.multiple_of}, got {tree.shown()}")
        return number

    def _text(self, tree: Tree, wanted: inspect.StrType) -> Any:
        if isinstance(tree.value, bool):
            self._problems.error(tree, f"must be a string, got {misread(tree.value)}")
            return tree.value
        if not isinstance(tree.value, str):
            return self._expect(tree, False, "a string")
        if wanted.min_length is not None and len(tree.value) < wanted.min_length:
            short = "must not be empty" if wanted.min_length == 1 else f"must have at least {wanted.min_length} letters"
            self._problems.error(tree, f"{short}, got {tree.shown()}")
        if wanted.max_length is not None and len(tree.value) > wanted.max_length:
            self._problems.error(tree, f"must have at most {wanted.max_length} letters, got {tree.shown()}")
        if wanted.pattern is not None and not re.search(wanted.pattern, tree.value):
            self._problems.error(tree, f"must match {wanted.pattern}, got {tree.shown()}")
        return tree.value

    def _duration(self, tree: Tree) -> Any:
        seconds = duration_seconds(tree.value) if isinstance(tree.value, str) else None
        if seconds is None:
            return self._expect(tree, False, 'a duration such as "15s" or "1m30s"')
        return _to_microseconds(seconds)

    def _choice(self, tree: Tree, choices: tuple[Any, ...]) -> Any:
        if isinstance(tree.value, dict | list) or tree.value not in choices:
            hint = did_you_mean(str(tree.value), [str(choice) for choice in choices])
            listed = ", ".join(str(choice) for choice in choices)
            self._problems.error(tree, f"must be one of {listed}; got {tree.shown()}.{hint}")
        return tree.plain()


def _to_microseconds(seconds: float) -> timedelta:
    """Cut, as a timedelta knows no nanoseconds; but what is not zero stays so, for zero often means no limit."""
    microseconds = round(abs(seconds) * 10**9) // 1000
    if seconds and not microseconds:
        microseconds = 1
    return timedelta(microseconds=microseconds if seconds >= 0 else -microseconds)


def _range(wanted: inspect.IntType | inspect.FloatType, low: Any, high: Any) -> str:
    if wanted.ge is not None and wanted.le is not None:
        return f"between {low} and {high}"
    at_least = "at least" if wanted.ge is not None else "greater than"
    at_most = "at most" if wanted.le is not None else "less than"
    parts = [f"{at_least} {low}"] * (low is not None) + [f"{at_most} {high}"] * (high is not None)
    return " and ".join(parts)
