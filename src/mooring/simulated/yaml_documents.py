"""YAML as kubectl reads it, with the line of every value, so that a mistake can be shown where it was made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from mooring.base.errors import OperatorMistake, Problem

Path = tuple[str | int, ...]

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _KubernetesLoader(_Loader):  # type: ignore[misc]  # the C loader is absent where PyYAML was built without it
    """Kubernetes' scalars: what YAML 1.1 takes for dates, base-60 numbers and `=` are plain strings."""


_STRING = "tag:yaml.org,2002:str"
_SHORT_BOOLEANS = {"y": True, "Y": True, "n": False, "N": False}

_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"^(?:0o?[0-7]+|[-+]?0b[01]+|[-+]?(?:0|[1-9][0-9]*)|[-+]?0x[0-9a-fA-F]+)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"^(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}
_DROPPED = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value", *_NUMBERS}
_KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    _KubernetesLoader.add_implicit_resolver(_tag, _pattern, list("-+0123456789."))


@dataclass(frozen=True)
class YamlDocument:
    """One document of a file: its value, and where each part of it is written."""

    value: Any
    lines: dict[Path, int]

    @property
    def line(self) -> int:
        return self.lines.get((), 1)

    def line_of(self, path: Path) -> int:
        """The line of the value at the path, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, self.line)

    def within(self, path: Path) -> YamlDocument:
        """A part of the document as a document of its own."""
        value = self.value
        for step in path:
            value = value[step]
        size = len(path)
        return YamlDocument(value, {key[size:]: line for key, line in self.lines.items() if key[:size] == path})


def read_yaml(text: str, source: str) -> list[YamlDocument]:
    """The documents of a file; empty ones are left out. Raises what is wrong with the YAML itself."""
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=_KubernetesLoader) if node is not None]
    except yaml.YAMLError as error:
        raise _unreadable(error, source) from error
    documents, problems = [], []
    for node in nodes:
        reader = _Reader()
        value = reader.value(node, ())
        problems += reader.problems
        if value is not None:
            documents.append(YamlDocument(value, reader.lines))
    if problems:
        raise OperatorMistake(f"{source} is not YAML that Kubernetes reads.", problems)
    return documents


def shown(path: Path) -> str:
    """A path as Kubernetes writes it: `spec.taints[0].effect`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _unreadable(error: yaml.YAMLError, source: str) -> OperatorMistake:
    mark = getattr(error, "problem_mark", None)
    message = getattr(error, "problem", None) or str(error)
    line = mark.line + 1 if mark is not None else None
    return OperatorMistake(f"{source} is not valid YAML.", [Problem(source, message, line)])


class _Reader:
    """Turns composed nodes into values and remembers where each came from."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._scalars = _KubernetesLoader("")

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        if (
            isinstance(node, yaml.ScalarNode)
            and node.tag == _STRING
            and not node.style
            and node.value in _SHORT_BOOLEANS
        ):
            return _SHORT_BOOLEANS[node.value]
        try:
            scalar = self._scalars.construct_object(node)
            # 1e3 is the number 1000, and as JSON it must not become 1000.0: integer fields would refuse it
            return int(scalar) if isinstance(scalar, float) and scalar.is_integer() else scalar
        except (yaml.YAMLError, ValueError) as error:
            self.problems.append(Problem(shown(path), str(getattr(error, "problem", error)), self.lines[path]))
            return None

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                for part in self._merged(value_node, path):
                    merged = part | merged
                continue
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in mapping:
                self.problems.append(Problem(shown((*path, key)), "is given twice", line))
            mapping[key] = self.value(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return merged | mapping

    def _merged(self, node: yaml.Node, path: Path) -> Iterator[dict[str, Any]]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for each in nodes:
            if isinstance(each, yaml.MappingNode):
                yield self._mapping(each, path)
