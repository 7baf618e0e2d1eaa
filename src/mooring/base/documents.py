"""YAML documents as trees whose every value knows its field path and its line.

Text is read as `sigs.k8s.io/yaml` reads it, so that a file means here what it means to kube-scheduler and kubectl: `y`
is true, `0o777` is 511, `1e3` is 1000; dates, `12:30` and `=` are strings; keys are strings (`y: 1` has the key
"true"). What a merge (`<<`) brings and what is written beside it are set in the order of the file: the last one holds.
A key that is written twice is refused, unless the reader is not strict. Unknown tags are refused
as well: they would need a constructor that does not exist here.

Trees are built from the parser's events. libyaml's composer recurses in C, where 30,000 brackets overflow the stack and
end the process; here every level is counted before it is built. Limits: `MOST_NESTED` levels (aliases included),
`MOST_BYTES` of text, `MOST_REPEATED` values that aliases repeat. A path is worked out when a message needs it, so long
keys are not copied into every value below them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.nesting import MOST_NESTED
from mooring.base.redaction import REDACTED, is_secret_name, scrubbed
from mooring.base.visible import is_visible, visible_yaml

Scalar = str | int | float | bool | None

THE_FILE = "the file"
"""The path of a problem that concerns no field."""

MOST_REPEATED = 100_000
"""How many values aliases may repeat: what is written out is as long as its file, aliases of aliases make billions."""

MOST_BYTES = 128 * 1024 * 1024
"""A cluster file of 5,000 nodes as kubectl writes them has about 3 MB, with managed fields and images about 75."""

_MOST_PROBLEMS = 100
"""How many are listed: a file that is not YAML at all may have one in every line."""

_MOST_DIGITS = 1_000
"""A longer number is text: Python does not print integers of several thousand digits."""

_NULLS = {"", "~", "null", "Null", "NULL"}
_TRUE = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
BOOLEAN_WORDS = {"true": "y, yes, on", "false": "n, no, off"}
"""What else YAML takes for a boolean."""
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_INTEGERS = (
    (re.compile(r"[-+]?0[xX][0-9a-fA-F]+"), 16),
    (re.compile(r"[-+]?0[bB][01]+"), 2),
    (re.compile(r"[-+]?0[oO]?[0-7]+"), 8),
    (re.compile(r"[-+]?(0|[1-9][0-9]*)"), 10),
)
_NUMERIC = frozenset("+-.0123456789")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_TAGS = "tag:yaml.org,2002:"
_NO_TAG = (None, "!")
_TAGGED: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}


Place: TypeAlias = "str | tuple[Place, str | int]"
"""A path that is written out, or a place and the step from there: the name of a field or the number of an item."""


@dataclass(slots=True)
class Tree:
    """A value with the place where it was written. `value` of a mapping or list holds trees again.

    What conversion adds has the place of what it was converted from, so that a message points into the file.
    """

    value: dict[str, Tree] | list[Tree] | Scalar
    place: Place
    line: int | None

    @property
    def path(self) -> str:
        """Fields and items from the document down to the value, as Kubernetes writes them: `profiles[0].plugins`."""
        return _path(self.place)

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
        if _is_secret(self.place):
            return REDACTED
        text = f'"{scrubbed(self.value)}"' if isinstance(self.value, str) else str(self.value)
        return text if len(text) <= 80 else f"{text[:76]}…"

    def below(self, name: str) -> str:
        """The path of a field of this mapping."""
        return f"{self.path}.{name}" if self.path else name


def _path(place: Place) -> str:
    steps: list[str] = []
    while not isinstance(place, str):
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return place + "".join(reversed(steps)) if place else "".join(reversed(steps)).removeprefix(".")


def made(value: Any, like: Tree) -> Tree:
    """A tree from plain values, in the place of another."""
    if isinstance(value, Tree):
        return value
    if isinstance(value, dict):
        return Tree({key: made(part, like) for key, part in value.items()}, like.place, like.line)
    if isinstance(value, list):
        return Tree([made(part, like) for part in value], like.place, like.line)
    return Tree(value, like.place, like.line)


def resolved(text: str) -> Scalar:
    """What an unquoted scalar means."""
    if text in _NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    digits = text.replace("_", "") if text[:1] in "+-0123456789" else text
    if digits[:1] not in _NUMERIC:
        return text
    try:
        for form, base in _INTEGERS:
            if form.fullmatch(digits):
                # Python refuses 017 and wants 0o17.
                return int(digits, base) if len(digits) <= _MOST_DIGITS else text
        if _FLOAT.fullmatch(digits):
            number = float(digits)
            return int(number) if number.is_integer() and abs(number) < 2**63 else number
    except ValueError:  # thousands of digits
        return text
    return text


def misread(value: object) -> str:
    """A value that should be text, as messages show it: what YAML made of it, and what to do."""
    if isinstance(value, bool):
        words = BOOLEAN_WORDS[str(value).lower()]
        return (
            f"the boolean {str(value).lower()}, as YAML reads {words} and {str(value).lower()} without quotes; quote it"
        )
    if isinstance(value, int | float):
        return f"the number {value}; write it in quotes"
    return "nothing" if value is None else "a mapping" if isinstance(value, dict) else "a list"


_Loader: type[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""The C loader is absent where PyYAML was built without it."""


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
    if len(text) > MOST_BYTES:
        raise _unreadable(source, f"has {len(text):,} bytes; at most {MOST_BYTES:,} are read. Split the file.")
    reader = _Reader(strict)
    try:
        reader.read(yaml.parse(text, Loader=_Loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = getattr(error, "problem", None) or str(error)
        raise _unreadable(source, message, mark.line + 1 if mark else None) from error
    except _TooDeep as error:
        message = f"is nested more than {MOST_NESTED} levels deep; at most {MOST_NESTED} are read"
        raise _unreadable(source, message, error.line) from None
    except ValueError as error:
        raise _unreadable(source, "has characters that are not text") from error
    if reader.problems:
        raise OperatorMistake.found_in(source, reader.problems)
    return reader.trees


def _unreadable(source: str, message: str, line: int | None = None) -> OperatorMistake:
    return OperatorMistake(f"{source} cannot be read.", [Problem(source, message, line)])


class _TooDeep(Exception):
    def __init__(self, line: int | None) -> None:
        self.line = line


_NO_KEY = object()
"""Of a mapping whose next event is a key."""
_UNUSABLE = object()
"""The key of a value that is read and dropped: its problem has been noted."""
_MERGE = object()


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not come yet."""

    tree: Tree
    is_mapping: bool
    is_merged: bool
    """The value of `<<`: what it holds belongs to the mapping around it, and has paths as if it were written there."""
    anchor: str | None
    key: Any = _NO_KEY
    line: int = 0
    """Of the key."""
    written: set[str] | None = None


class _Reader:
    """Builds trees from events, and collects what Kubernetes would not read."""

    def __init__(self, strict: bool) -> None:
        self.trees: list[Tree] = []
        self.problems: list[Problem] = []
        self._strict = strict
        self._open: list[_Open] = []
        self._anchors: dict[str, Tree | None] = {}
        """None while the anchored value has not ended."""
        self._repeated = 0

    def read(self, events: Iterable[Any]) -> None:
        opened = self._open
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                if opened and (top := opened[-1]).key is _NO_KEY and top.is_mapping:
                    self._begin_field(top, event)
                    continue
                place, line = self._next(event)
                tree = Tree(self._scalar(event, place, line), place, line)
                if event.anchor is not None:
                    self._anchors[event.anchor] = tree
                if opened:
                    self._put(opened[-1], tree)
                elif not (_is_plain(event) and event.value in _NULLS):
                    self.trees.append(tree)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._begin(event, is_mapping=kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                self._anchors = {}

    def _next(self, event: Any) -> tuple[Place, int]:
        """The place and line of the value that this event begins: a field has the line of its key."""
        if not self._open:
            return "", event.start_mark.line + 1
        top = self._open[-1]
        if top.is_mapping:
            if top.key is _NO_KEY:  # a mapping or list as a key
                return top.tree.place, event.start_mark.line + 1
            return top.tree.place if top.key is _MERGE else (top.tree.place, top.key), top.line
        place = top.tree.place if top.is_merged else (top.tree.place, len(top.tree.items))
        return place, event.start_mark.line + 1

    def _begin(self, event: Any, *, is_mapping: bool) -> None:
        place, line = self._next(event)
        if len(self._open) >= MOST_NESTED:
            raise _TooDeep(event.start_mark.line + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        is_merged = bool(self._open) and self._open[-1].key is _MERGE
        tree = Tree({} if is_mapping else [], place, line)
        self._open.append(_Open(tree, is_mapping, is_merged, event.anchor))

    def _end(self) -> None:
        ended = self._open.pop()
        if ended.anchor is not None:
            self._anchors[ended.anchor] = ended.tree
        if self._open:
            self._put(self._open[-1], ended.tree)
        else:
            self.trees.append(ended.tree)

    def _begin_field(self, top: _Open, event: Any) -> None:
        """A scalar as a key."""
        text, is_plain = event.value, _is_plain(event)
        line = event.start_mark.line + 1
        if text == "<<" and (is_plain or event.tag == f"{_TAGS}merge"):
            top.key, top.line = _MERGE, line
            return
        value = resolved(text) if is_plain else text
        if event.anchor is not None:
            self._anchors[event.anchor] = Tree(value, top.tree.place, line)
        self._name_field(top, value, line)

    def _name_field(self, top: _Open, value: Scalar, line: int) -> None:
        """A key is text, as in JSON."""
        top.line = line
        if value is None:
            self._problem(top.tree.place, "a key must be a string", line)
            top.key = _UNUSABLE
            return
        key = ("true" if value else "false") if isinstance(value, bool) else str(value)
        top.key = key
        if top.written is None:
            top.written = {key}
        elif key not in top.written:
            top.written.add(key)
        elif self._strict:
            self._problem((top.tree.place, key), f'"{key}" is given twice', line)

    def _put(self, top: _Open, tree: Tree) -> None:
        """A value into the mapping or list around it."""
        if not top.is_mapping:
            top.tree.items.append(tree)
            return
        if top.key is _NO_KEY:
            if isinstance(tree.value, dict | list):
                self._problem(top.tree.place, "a key must be a string", tree.line or 0)
                top.key, top.line = _UNUSABLE, tree.line or 0
            else:
                self._name_field(top, tree.value, tree.line or 0)
            return
        if top.key is _MERGE:
            top.tree.fields.update(self._merged(tree, top))
        elif top.key is not _UNUSABLE:
            top.tree.fields[top.key] = tree
        top.key = _NO_KEY

    def _merged(self, tree: Tree, top: _Open) -> dict[str, Tree]:
        merged: dict[str, Tree] = {}
        for part in tree.items if isinstance(tree.value, list) else [tree]:
            if isinstance(part.value, dict):
                merged = part.fields | merged
            else:
                self._problem(top.tree.place, '"<<" merges mappings only', top.line)
        return merged

    def _alias(self, event: Any) -> None:
        place, line = self._next(event)
        if event.anchor not in self._anchors:
            alias = REDACTED if _is_secret(place) else event.anchor
            raise yaml.composer.ComposerError(None, None, f"the alias *{alias} has no anchor", event.start_mark)
        found = self._anchors[event.anchor]
        if found is None:
            self._problem(place, "an anchor contains itself", line)
            tree = Tree(None, place, line)
        else:
            is_merged_list = bool(self._open) and self._open[-1].key is _MERGE and isinstance(found.value, list)
            try:
                tree = self._repeat(found, place, line, len(self._open), is_merged=is_merged_list)
            except _TooDeep:
                raise _TooDeep(event.start_mark.line + 1) from None
        if self._open:
            self._put(self._open[-1], tree)
        else:
            self.trees.append(tree)

    def _repeat(self, tree: Tree, place: Place, line: int | None, depth: int, *, is_merged: bool = False) -> Tree:
        """An anchored value once more, in another place."""
        self._repeated += 1
        if self._repeated > MOST_REPEATED:
            if self._repeated == MOST_REPEATED + 1:
                self._problem(place, "has too many values: an alias repeats too much", line or 0)
            return Tree(None, place, line)
        if not isinstance(tree.value, dict | list):
            return Tree(tree.value, place, line)
        if depth >= MOST_NESTED:
            raise _TooDeep(line)
        if isinstance(tree.value, dict):
            fields = {key: self._repeat(part, (place, key), part.line, depth + 1) for key, part in tree.value.items()}
            return Tree(fields, place, line)
        items = [
            self._repeat(part, place if is_merged else (place, index), part.line, depth + 1)
            for index, part in enumerate(tree.value)
        ]
        return Tree(items, place, line)

    def _scalar(self, event: Any, place: Place, line: int) -> Scalar:
        text: str = event.value
        if _is_plain(event):
            value = resolved(text)
            if value.__class__ is str and text[:1] in _NUMERIC and _NOT_FINITE.fullmatch(text):
                self._problem(place, f"{text} is not a number that JSON has", line)
            return self._finite(value, place, line)
        if event.tag in _NO_TAG or event.tag == f"{_TAGS}str":
            return text
        value = resolved(text)
        if not isinstance(value, _TAGGED.get(event.tag.removeprefix(_TAGS), ())):
            tag = f"!{REDACTED}" if _is_secret(place) else event.tag.replace(_TAGS, "!!")
            self._problem(place, f"{tag} cannot be read here", line)
        return self._finite(value, place, line)

    def _finite(self, value: Scalar, place: Place, line: int) -> Scalar:
        if isinstance(value, float) and not math.isfinite(value):
            self._problem(place, "the number is too large", line)
        return value

    def _problem(self, place: Place, message: str, line: int) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(_path(place) or THE_FILE, message, line))
        elif len(self.problems) == _MOST_PROBLEMS:
            self.problems.append(Problem(THE_FILE, "has more problems, which are not listed", line))


def _is_secret(place: Place) -> bool:
    """Whether a field's name shows that it, or what it is a list of, is a credential."""
    while isinstance(place, tuple):
        place, step = place
        if isinstance(step, str):
            return is_secret_name(step)
    return False


def _is_plain(event: Any) -> bool:
    """Neither quoted nor tagged."""
    return bool(event.implicit[0]) and event.tag in _NO_TAG


class _Dumper(yaml.SafeDumper):
    """Writes what `read_tree` reads back unchanged."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    is_plain = resolved(text) == text and isinstance(resolved(text), str) and not _NOT_FINITE.fullmatch(text)
    return dumper.represent_scalar(f"{_TAGS}str", text, style=None if is_plain and is_visible(text) else '"')


_Dumper.add_representer(str, _represent_text)


def written(value: Any) -> str:
    """Plain values as YAML text."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True)
    return visible_yaml(text)


def readable_style(text: str, *, is_plain: bool = True) -> str | None:
    """How people write a text in YAML: lines as lines, and in quotes only what needs them (None: as it is)."""
    if not all(is_visible(line) for line in text.replace("\t", " ").split("\n")):
        return '"'
    return "|" if "\n" in text else None if is_plain else '"'
