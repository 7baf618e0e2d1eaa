"""A configuration's text without `clientConnection.kubeconfig`: a pod connects with its service account.

The lines of the field are cut out, so that comments and the order of the file stay; the meaning of the rest does not
change, and that is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake, Problem

_PATH = ("clientConnection", "kubeconfig")


def without_kubeconfig(text: str, source: str) -> str:
    """The text without the field, or as it is if it has none. Refused where the field shares its line with others."""
    wanted = read_tree(text, source).plain()
    path = _path(wanted)
    if not path:
        return text
    lines = text.splitlines(keepends=True)
    first, last = _lines_of(text, path)
    cut = "".join(lines[:first] + lines[last:])
    _remove(wanted, path)
    try:
        is_same = read_tree(cut, source).plain() == wanted
    except OperatorMistake:
        is_same = False
    if not is_same:
        message = "write it on a line of its own, or leave it out: a pod connects with its service account"
        raise OperatorMistake.found_in(source, [Problem(".".join(_PATH), message, first + 1)])
    return cut


def _path(tree: Any) -> tuple[str, ...]:
    """What is to go: the field, or the section if it would be left empty; nothing if there is no such field."""
    section = tree.get(_PATH[0]) if isinstance(tree, dict) else None
    if not isinstance(section, dict) or _PATH[1] not in section:
        return ()
    return _PATH if len(section) > 1 else _PATH[:1]


def _lines_of(text: str, path: tuple[str, ...]) -> tuple[int, int]:
    """The first line of the field, and the one after its last."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for at, name in enumerate(path):
        for key, value in _fields(node):
            if key.value == name:
                if at + 1 < len(path):
                    node = value
                    break
                end = value.end_mark
                # A block ends where the next thing begins, a scalar within its own line.
                return key.start_mark.line, end.line + (end.column > 0)
    raise AssertionError("the field was there a moment ago")


def _fields(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _remove(tree: Any, path: tuple[str, ...]) -> None:
    *above, last = path
    for name in above:
        tree = tree[name]
    del tree[last]
