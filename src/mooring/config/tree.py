"""A configuration file as a tree whose every value knows its field path and its line.

Text is read as `sigs.k8s.io/yaml` reads it, so that a file means here what it means to kube-scheduler: `y` is true,
`0o777` is 511, `1e3` is 1000; dates, `12:30` and `=` are strings; keys are strings, and a key given twice is refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import yaml

from mooring.base.errors import OperatorMistake, Problem

Scalar = str | int | float | bool | None

_MOST_VALUES = 100_000
"""A configuration has hundreds of values; aliases of aliases can make billions."""

_NULLS = {"", "~", "null", "Null", "NULL"}
_TRUE = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGERS = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[bB][01]+"), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), 10),
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_PLAIN = "!plain"
_TAGS = "tag:yaml.org,2002:"
_TAGGED: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}


@dataclass(slots=True)
class Tree:
    """A value with the place where it was written. `value` of a mapping or list holds trees again.

    What conversion makes up takes the place of what it was made from, so that a message points into the file.
    """

    value: dict[str, Tree] | list[Tree] | Scalar
    path: str
    line: int | None

    @property
    def fields(self) -> dict[str, Tree]:
        """The fields of a mapping; nothing for any other value."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[Tree]:
        """The items of a list; nothing for any other value."""
        return self.value if isinstance(self.value, list) else []

    def get(self, name: str) -> Tree | None:
        """A field that is there and not null: null means absent, as it does to kube-scheduler."""
        found = self.fields.get(name)
        return None if found is None or found.value is None else found

    def plain(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: part.plain() for key, part in self.value.items()}
        if isinstance(self.value, list):
            return [part.plain() for part in self.value]
        return self.value

    def shown(self) -> str:
        """The value as a message shows it, cut where it is long."""
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, list):
            return "a list"
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if self.value is None:
            return "null"
        text = f'"{self.value}"' if isinstance(self.value, str) else str(self.value)
        return text if len(text) <= 80 else f"{text[:76]}…"

    def below(self, name: str) -> str:
        """The path of a field of this mapping."""
        return f"{self.path}.{name}" if self.path else name


def made(value: Any, like: Tree) -> Tree:
    """A tree from plain values, in the place of another."""
    if isinstance(value, Tree):
        return value
    if isinstance(value, dict):
        return Tree({key: made(part, like) for key, part in value.items()}, like.path, like.line)
    if isinstance(value, list):
        return Tree([made(part, like) for part in value], like.path, like.line)
    return Tree(value, like.path, like.line)


def resolved(text: str) -> Scalar:
    """What an unquoted scalar means."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    digits = text.replace("_", "") if text[:1] in "+-0123456789" else text
    try:
        for form, base in _INTEGERS:
            if form.fullmatch(digits):
                # Python refuses 017 and wants 0o17.
                return int(digits, base)
        if _FLOAT.fullmatch(digits):
            number = float(digits)
            return int(number) if number.is_integer() and abs(number) < 2**63 else number
    except ValueError:  # thousands of digits
        return text
    return text


_CLoader: type[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _Loader(_CLoader):  # type: ignore[misc]  # the C loader is absent where PyYAML was built without it
    """Composes nodes and decides nothing, but marks what was neither quoted nor tagged."""


_Loader.add_implicit_resolver(_PLAIN, re.compile(""), None)


def read_tree(text: str, source: str) -> Tree:
    """The one document of a file. Raises OperatorMistake for what is not YAML."""
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=_Loader) if not _is_empty(node)]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        raise _unreadable(source, message, mark.line + 1 if mark else None) from error
    except (ValueError, RecursionError) as error:
        message = "is nested too deeply" if isinstance(error, RecursionError) else "has characters that are not text"
        raise _unreadable(source, message) from error
    if not nodes:
        raise _unreadable(source, "the file is empty; it must hold a KubeSchedulerConfiguration")
    if len(nodes) > 1:
        line = nodes[1].start_mark.line + 1
        raise _unreadable(source, f"holds {len(nodes)} documents; a configuration is one", line)
    reader = _Reader()
    try:
        tree = reader.tree(nodes[0], "", nodes[0].start_mark.line + 1)
    except RecursionError as error:
        raise _unreadable(source, "is nested too deeply") from error
    if reader.problems:
        raise OperatorMistake(counted(source, len(reader.problems)), reader.problems)
    return tree


def counted(source: str, problems: int) -> str:
    """The first line of a report."""
    return f"{source} has {problems} problem{'s' if problems != 1 else ''}."


def _unreadable(source: str, message: str, line: int | None = None) -> OperatorMistake:
    return OperatorMistake(f"{source} cannot be read.", [Problem(source, message, line)])


def _is_empty(node: yaml.Node | None) -> bool:
    return node is None or (node.tag == _PLAIN and node.value in _NULLS)


class _Reader:
    """Turns composed nodes into a tree, and collects what Kubernetes would not read."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._count = 0

    def tree(self, node: yaml.Node, path: str, line: int) -> Tree:
        self._count += 1
        if self._count > _MOST_VALUES:
            if self._count == _MOST_VALUES + 1:
                self._problem(path, "has too many values: an alias repeats too much", line)
            return Tree(None, path, line)
        if isinstance(node, yaml.ScalarNode):
            return Tree(self._scalar(node, path, line), path, line)
        if id(node) in self._open:
            self._problem(path, "an anchor contains itself", line)
            return Tree(None, path, line)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return Tree(self._mapping(node, path), path, line)
            return Tree(
                [
                    self.tree(item, f"{path}[{index}]", item.start_mark.line + 1)
                    for index, item in enumerate(node.value)
                ],
                path,
                line,
            )
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Tree]:
        written: dict[str, Tree] = {}
        merged: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(path, "a key must be a string", line)
                continue
            key = str(key_node.value)
            if key == "<<" and key_node.tag == _PLAIN:
                merged = self._merged(value_node, path, line) | merged
                continue
            below = f"{path}.{key}" if path else key
            if key in written:
                self._problem(below, f'"{key}" is given twice', line)
            written[key] = self.tree(value_node, below, line)
        return merged | written

    def _merged(self, node: yaml.Node, path: str, line: int) -> dict[str, Tree]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Tree] = {}
        for part in parts:
            if isinstance(part, yaml.MappingNode):
                merged = self.tree(part, path, line).fields | merged
            else:
                self._problem(path, '"<<" merges mappings only', line)
        return merged

    def _scalar(self, node: yaml.ScalarNode, path: str, line: int) -> Scalar:
        text = str(node.value)
        if node.tag == _PLAIN:
            value = resolved(text)
            if isinstance(value, str) and _NOT_FINITE.fullmatch(value):
                self._problem(path, f"{text} is not a number that JSON has", line)
            return self._finite(value, path, line)
        if node.tag == f"{_TAGS}str":
            return text
        value = resolved(text)
        if not isinstance(value, _TAGGED.get(node.tag.removeprefix(_TAGS), ())):
            self._problem(path, f"{node.tag.replace(_TAGS, '!!')} cannot be read here", line)
        return self._finite(value, path, line)

    def _finite(self, value: Scalar, path: str, line: int) -> Scalar:
        if isinstance(value, float) and not math.isfinite(value):
            self._problem(path, "the number is too large", line)
        return value

    def _problem(self, path: str, message: str, line: int) -> None:
        self.problems.append(Problem(path or "the file", message, line))


class _Dumper(yaml.SafeDumper):
    """Writes what `read_tree` reads back unchanged."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    is_plain = resolved(text) == text and isinstance(resolved(text), str) and not _NOT_FINITE.fullmatch(text)
    return dumper.represent_scalar(f"{_TAGS}str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _represent_text)


def written(value: Any) -> str:
    """Plain values as YAML text."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True)
    return text
