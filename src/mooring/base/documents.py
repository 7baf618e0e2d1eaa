"""YAML documents as trees whose every value knows its field path and its line.

Text is read as `sigs.k8s.io/yaml` reads it, so that a file means here what it means to kube-scheduler and kubectl: `y`
is true, `0o777` is 511, `1e3` is 1000; dates, `12:30` and `=` are strings; keys are strings (`y: 1` has the key
"true"). What a merge (`<<`) brings and what is written beside it are set in the order of the file: the last one holds.
A key that is written twice is refused, unless the reader is told not to be strict. The one more thing that we refuse
is a tag that we do not know: it asks for a meaning that nobody here can give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from mooring.base.errors import OperatorMistake, Problem

Scalar = str | int | float | bool | None

THE_FILE = "the file"
"""The path of a problem that concerns no field."""

_MOST_REPEATED = 100_000
"""How many values aliases may repeat: what is written out is as long as its file, aliases of aliases make billions."""

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

    def nearest(self, steps: Iterable[str | int]) -> Tree:
        """What these fields and items lead to, or the last thing on the way that is there."""
        found = self
        for step in steps:
            part = found.fields.get(step) if isinstance(step, str) else dict(enumerate(found.items)).get(step)
            if part is None:
                break
            found = part
        return found

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


def read_tree(text: str | bytes, source: str, *, strict: bool = True) -> Tree:
    """The one document of a file, or null where the file is empty. Raises OperatorMistake for what is not YAML.

    `source` is what messages call the file. Bytes may be in any encoding that YAML allows.
    """
    trees = read_trees(text, source, strict=strict)
    if len(trees) > 1:
        raise _unreadable(source, f"holds {len(trees)} documents; only one is read here", trees[1].line)
    return trees[0] if trees else Tree(None, "", None)


def read_trees(text: str | bytes, source: str, *, strict: bool = True) -> list[Tree]:
    """Every document of a file; empty ones are left out."""
    reader = _Reader(strict)
    try:
        # All of them first: the reader knows nodes by their identity.
        nodes = [node for node in yaml.compose_all(text, Loader=_Loader) if not _is_empty(node)]
        trees = [reader.tree(node, "", node.start_mark.line + 1) for node in nodes]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        raise _unreadable(source, message, mark.line + 1 if mark else None) from error
    except RecursionError as error:
        raise _unreadable(source, "is nested too deeply") from error
    except ValueError as error:
        raise _unreadable(source, "has characters that are not text") from error
    if reader.problems:
        raise OperatorMistake.found_in(source, reader.problems)
    return trees


def _unreadable(source: str, message: str, line: int | None = None) -> OperatorMistake:
    return OperatorMistake(f"{source} cannot be read.", [Problem(source, message, line)])


def _is_empty(node: yaml.Node | None) -> bool:
    return node is None or (node.tag == _PLAIN and node.value in _NULLS)


class _Reader:
    """Turns composed nodes into a tree, and collects what Kubernetes would not read."""

    def __init__(self, strict: bool) -> None:
        self.problems: list[Problem] = []
        self._strict = strict
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._repeated = 0

    def tree(self, node: yaml.Node, path: str, line: int) -> Tree:
        self._repeated += id(node) in self._seen
        self._seen.add(id(node))
        if self._repeated > _MOST_REPEATED:
            if self._repeated == _MOST_REPEATED + 1:
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
        fields: dict[str, Tree] = {}
        written: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.value == "<<" and key_node.tag in (_PLAIN, f"{_TAGS}merge"):
                fields |= self._merged(value_node, path, line)
                continue
            key = self._key(key_node)
            if key is None:
                self._problem(path, "a key must be a string", line)
                continue
            below = f"{path}.{key}" if path else key
            if key in written and self._strict:
                self._problem(below, f'"{key}" is given twice', line)
            written.add(key)
            fields[key] = self.tree(value_node, below, line)
        return fields

    def _key(self, node: yaml.Node) -> str | None:
        """The key as JSON would have it; None for what is no key there."""
        if not isinstance(node, yaml.ScalarNode):
            return None
        value = resolved(node.value) if node.tag == _PLAIN else str(node.value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return None if value is None else str(value)

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
        self.problems.append(Problem(path or THE_FILE, message, line))


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
