"""Templates of objects: YAML with the actions of Go's text/template that upstream's files use.

`{{ .Index }}` is the number of the object, `{{ .Count }}` how many there are; `{{ Mod .Index 12 }}` and the other
arithmetic functions of upstream's harness take numbers, fields and calls in parentheses. Any other action is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake, Problem

Document = dict[str, Any]
Number = int | float
Expression = Callable[[Mapping[str, Number]], Number]

_TOKEN = re.compile(r"\s*(?:(?P<number>[-+]?\d+(?:\.\d+)?)|(?P<field>\.\w+)|(?P<word>\w+)|(?P<mark>[()]))")
_KEYWORDS = {"if", "else", "end", "range", "with", "define", "template", "block", "break", "continue"}


class Template:
    """A file with the objects that it describes. One without actions is parsed once."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._parts = list(_parts(text, path))

    @property
    def is_static(self) -> bool:
        """Whether every object is the same."""
        return all(isinstance(part, str) for part in self._parts)

    def render(self, index: int, count: int) -> Document:
        """The object of this number. What is returned may be shared: it must not be changed."""
        return self._only if self.is_static else self._parsed({"Index": index, "Count": count})

    @cached_property
    def _only(self) -> Document:
        return self._parsed({})

    def _parsed(self, fields: Mapping[str, Number]) -> Document:
        text = "".join(part if isinstance(part, str) else _printed(part(fields)) for part in self._parts)
        document = read_tree(text, str(self.path)).plain()
        if not isinstance(document, dict):
            raise _mistake(self.path, "must be one object")
        return document


def read_template(path: Path) -> Template:
    try:
        return Template(path, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperatorMistake(f"cannot read the template {path}: {error.strerror}") from error


def _parts(text: str, path: Path) -> Iterator[str | Expression]:
    position = 0
    while (begin := text.find("{{", position)) >= 0:
        end = text.find("}}", begin)
        if end < 0:
            raise _mistake(path, "has an action without its end, }}")
        before, action, after = text[position:begin], text[begin + 2 : end], end + 2
        if action.startswith("- "):
            before, action = before.rstrip(), action[1:]
        if action.endswith(" -"):
            action = action[:-1]
            after += len(text[after:]) - len(text[after:].lstrip())
        yield before
        if not (action.startswith("/*") and action.endswith("*/")):
            yield _Parser(action, path).parse()
        position = after
    yield text[position:]


class _Parser:
    """One action: a field, a number, or a call of a function with such arguments."""

    def __init__(self, action: str, path: Path) -> None:
        self._action, self._path = action.strip(), path
        self._tokens = list(self._split())

    def parse(self) -> Expression:
        expression = self._command()
        if self._tokens:
            raise self._error("has more than one command")
        return expression

    def _split(self) -> Iterator[tuple[str, str]]:
        position = 0
        while position < len(self._action):
            match = _TOKEN.match(self._action, position)
            if match is None:
                raise self._error("is not an action that is supported here")
            position = match.end()
            assert match.lastgroup is not None
            yield match.lastgroup, match[match.lastgroup]

    def _command(self) -> Expression:
        if not self._tokens:
            raise self._error("has no value")
        kind, text = self._tokens[0]
        if kind != "word":
            return self._operand()
        del self._tokens[0]
        if text in _KEYWORDS:
            raise self._error(f'uses "{text}", which is not supported here')
        if text not in _FUNCTIONS:
            raise self._error(f'calls "{text}"; the functions are {", ".join(_FUNCTIONS)}')
        arguments = []
        while self._tokens and self._tokens[0] != ("mark", ")"):
            arguments.append(self._operand())
        function, arity = _FUNCTIONS[text]
        if arity is not None and len(arguments) != arity:
            raise self._error(f"calls {text} with {len(arguments)} arguments; it takes {arity}")
        return lambda fields: function(*(argument(fields) for argument in arguments))

    def _operand(self) -> Expression:
        kind, text = self._tokens.pop(0)
        if kind == "number":
            value = float(text) if "." in text else int(text)
            return lambda _: value
        if kind == "field":
            if (name := text[1:]) not in ("Index", "Count"):
                raise self._error(f"reads {text}; the fields are .Index and .Count")
            return lambda fields: fields[name]
        if text == "(":
            inner = self._command()
            if self._tokens[:1] != [("mark", ")")]:
                raise self._error("has a parenthesis without its end")
            del self._tokens[0]
            return inner
        raise self._error(f'has "{text}" where a value belongs')

    def _error(self, message: str) -> OperatorMistake:
        return _mistake(self._path, f"{{{{ {self._action} }}}} {message}")


def _mistake(path: Path, message: str) -> OperatorMistake:
    return OperatorMistake.found_in(str(path), [Problem(path.name, message)])


def _divided(dividend: Number, divisor: Number) -> float:
    if not divisor:
        raise OperatorMistake("a template divides by zero.")
    return dividend / divisor


def _sum(*numbers: Number) -> float:
    return float(sum(numbers))


def _product(*numbers: Number) -> float:
    return float(math.prod(numbers))


def _remainder(dividend: Number, divisor: Number) -> int:
    # Go's remainder has the sign of the dividend.
    return int(math.fmod(int(dividend), int(divisor)))


def _difference(first: Number, second: Number) -> float:
    return float(first - second)


def _whole(function: Callable[..., float]) -> Callable[..., int]:
    return lambda *numbers: int(function(*numbers))


_FUNCTIONS: dict[str, tuple[Callable[..., Number], int | None]] = {
    "AddFloat": (_sum, None),
    "AddInt": (_whole(_sum), None),
    "DivideFloat": (_divided, 2),
    "DivideInt": (_whole(_divided), 2),
    "Mod": (_remainder, 2),
    "MultiplyFloat": (_product, None),
    "MultiplyInt": (_whole(_product), None),
    "SubtractFloat": (_difference, 2),
    "SubtractInt": (_whole(_difference), 2),
}
"""By name, with the number of arguments where it is fixed."""


def _printed(value: Number) -> str:
    return str(int(value)) if isinstance(value, int) or value.is_integer() else repr(value)
