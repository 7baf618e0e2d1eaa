"""Tokens to nodes, by CEL's grammar.

Recursive descent, one method a rule. Binary operators of one rank associate to the left, except `&&` and `||`: their
terms become a balanced tree, which gives long conditions the depth of short ones. Macros are expanded on the way.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

from mooring.cel.errors import Issue
from mooring.cel.lexer import Token, tokens
from mooring.cel.macros import MACROS, MacroMistake, Macros
from mooring.cel.syntax import (
    Broken,
    Call,
    Entry,
    Expression,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)
from mooring.cel.unescape import BadLiteral, bytes_of, text_of
from mooring.cel.values import Uint

_BINARY = {
    "<": "_<_",
    "<=": "_<=_",
    ">=": "_>=_",
    ">": "_>_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
    "+": "_+_",
    "-": "_-_",
    "*": "_*_",
    "/": "_/_",
    "%": "_%_",
}
_RANKS = dict.fromkeys(_BINARY, 0) | {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"}
    | {"package", "namespace", "null", "return", "true", "var", "void", "while"}
)
"""Names that no variable and no function can have."""
_EXPECTED = {"EOF": "end of the expression", "identifier": "a name"}
_LONGEST_SHOWN = 64
_RANGES = {"int": (-(2**63), 2**63), "uint": (0, 2**64)}
_MOST_DIGITS = 20
LONGEST_EXPRESSION = 100_000
DEEPEST_NESTING = 250


_Any = TypeVar("_Any", bound=Expression)


class _SyntaxMistake(Exception):
    """The tokens are no expression from this one on."""

    def __init__(self, at: Token, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(at.offset, f"Syntax error: {message}")


class _TooDeep(Exception):
    """Nested beyond what upstream reads."""


def parse(text: str, issues: list[Issue], macros: Macros = MACROS) -> Expression:
    """The expression; where there are issues, what came back is of no use."""
    if len(text) > LONGEST_EXPRESSION:
        issues.append(
            Issue(
                None,
                f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST_EXPRESSION}",
            )
        )
        return Broken(0)
    found: list[Issue] = []
    try:
        tree = _Parser(list(tokens(text)), found, macros).start()
    except _SyntaxMistake as mistake:
        issues += [*found, mistake.issue]
        return Broken(0)
    except (RecursionError, _TooDeep):
        issues.append(Issue(None, f"expression recursion limit exceeded: {DEEPEST_NESTING}"))
        return Broken(0)
    issues += found
    return tree


class _Parser:
    def __init__(self, found: list[Token], issues: list[Issue], macros: Macros) -> None:
        self._issues = issues
        self._tokens = found
        self._macros = macros
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _taken(self, kind: str) -> Token | None:
        return self._take() if self._next.kind == kind else None

    def _expect(self, kind: str) -> Token:
        if self._next.kind != kind:
            raise self._unexpected(_EXPECTED.get(kind, f"'{kind}'"))
        return self._take()

    def _unexpected(self, expected: str) -> _SyntaxMistake:
        token = self._next
        if token.kind == "unreadable":
            if token.text in "\"'":
                return _SyntaxMistake(token, "the string has no end, or an invalid escape sequence")
            return _SyntaxMistake(token, f"unexpected character {token.text!r}")
        found = _EXPECTED["EOF"] if token.kind == "EOF" else f"'{token.text[:_LONGEST_SHOWN]}'"
        return _SyntaxMistake(token, f"unexpected {found}, expected {expected}")

    def _report(self, offset: int, message: str) -> Expression:
        self._issues.append(Issue(offset, message))
        return Broken(offset)

    def start(self) -> Expression:
        node = self._expr()
        self._expect("EOF")
        if node.depth > DEEPEST_NESTING:
            self._issues.append(Issue(None, "max recursion depth exceeded"))
        return node

    def _expr(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise _TooDeep
        node = self._either()
        if (conditional := self._taken("?")) is not None:
            then = self._either()
            self._expect(":")
            otherwise = self._expr()
            node = self._call(conditional.offset, "_?_:_", node, then, otherwise)
        self._depth -= 1
        return node

    def _either(self) -> Expression:
        terms, operators = [self._both()], list[int]()
        while (operator := self._taken("||")) is not None:
            operators.append(operator.offset)
            terms.append(self._both())
        return _balanced("_||_", terms, operators)

    def _both(self) -> Expression:
        terms, operators = [self._binary(0)], list[int]()
        while (operator := self._taken("&&")) is not None:
            operators.append(operator.offset)
            terms.append(self._binary(0))
        return _balanced("_&&_", terms, operators)

    def _binary(self, rank: int) -> Expression:
        """Operators of at least this rank; those of one rank from left to right."""
        node = self._unary()
        while (found := _RANKS.get(self._next.kind)) is not None and found >= rank:
            operator = self._take()
            node = self._call(operator.offset, _BINARY[operator.kind], node, self._binary(found + 1))
        return node

    def _unary(self) -> Expression:
        first = self._next
        if first.kind == "!" or (first.kind == "-" and self._tokens[self._at + 1].kind not in ("int", "float")):
            count = 0
            while self._taken(first.kind):
                count += 1
            node = self._member()
            if count % 2 == 0:
                return node
            return _deeper(Call(first.offset, f"{first.kind}_", None, [node]), node, by=0)
        return self._member()

    def _member(self) -> Expression:
        node = self._primary()
        while self._next.kind in (".", "["):
            operator = self._take()
            optional = self._taken("?") is not None
            if operator.kind == "[":
                index = self._expr()
                self._expect("]")
                node = self._call(operator.offset, "_[?_]" if optional else "_[_]", node, index)
                continue
            field = self._next
            name = self._field_name()
            if optional:
                node = self._call(operator.offset, "_?._", node, Literal(field.offset, name))
            elif field.kind == "identifier" and (bracket := self._taken("(")) is not None:
                node = self._expanded(bracket.offset, name, node, self._arguments())
            else:
                node = _deeper(Select(operator.offset, node, name), node)
        return node

    def _field_name(self) -> str:
        token = self._next
        if token.kind == "identifier":
            return self._take().text
        if token.kind == "escaped":
            self._report(token.offset, "unsupported syntax: '`'")
            return self._take().text
        raise self._unexpected("a field name")

    def _arguments(self) -> list[Expression]:
        if self._taken(")"):
            return []
        arguments = [self._expr()]
        while self._taken(","):
            arguments.append(self._expr())
        self._expect(")")
        return arguments

    def _primary(self) -> Expression:
        token = self._next
        if token.kind in ("identifier", "."):
            return self._named()
        if token.kind == "(":
            self._take()
            node = self._expr()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list()
        if token.kind == "{":
            literal = MapLiteral(self._take().offset, self._entries(fields=False))
            return _deeper(literal, *(part for each in literal.entries for part in (each.key, each.value)), by=0)
        return self._literal()

    def _named(self) -> Expression:
        leading = self._taken(".")
        token = self._expect("identifier")
        dot = "." if leading else ""
        start = leading.offset if leading else token.offset
        if (struct_name := self._struct_name(token)) is not None:
            brace = self._expect("{")
            struct = StructLiteral(brace.offset, dot + struct_name, self._entries(fields=True))
            return _deeper(struct, *(each.value for each in struct.entries), by=0)
        if token.text in _RESERVED:
            if (bracket := self._taken("(")) is not None:
                self._arguments()
            return self._report(start, f"reserved identifier: {token.text}")
        if (bracket := self._taken("(")) is not None:
            return self._expanded(bracket.offset, dot + token.text, None, self._arguments())
        return Ident(token.offset, dot + token.text)

    def _struct_name(self, first: Token) -> str | None:
        """`a.b.C`, where a brace follows it."""
        names, ahead = [first.text], self._at
        while self._tokens[ahead].kind == "." and self._tokens[ahead + 1].kind == "identifier":
            names.append(self._tokens[ahead + 1].text)
            ahead += 2
        if self._tokens[ahead].kind != "{":
            return None
        self._at = ahead
        return ".".join(names)

    def _list(self) -> Expression:
        bracket = self._take()
        elements: list[Expression] = []
        optionals: set[int] = set()
        while self._next.kind not in ("]", ","):
            if self._taken("?"):
                optionals.add(len(elements))
            elements.append(self._expr())
            if not self._taken(","):
                break
        if not elements:
            self._taken(",")  # `[,]` is a list
        self._expect("]")
        return _deeper(ListLiteral(bracket.offset, elements, frozenset(optionals)), *elements, by=0)

    def _entries(self, *, fields: bool) -> list[Entry]:
        entries: list[Entry] = []
        while self._next.kind not in ("}", ","):
            optional = self._taken("?") is not None
            key: Any = self._field_name() if fields else self._expr()
            colon = self._expect(":")
            entries.append(Entry(colon.offset, key, self._expr(), optional))
            if not self._taken(","):
                break
        if not entries:
            self._taken(",")
        self._expect("}")
        return entries

    def _literal(self) -> Expression:
        sign = self._taken("-")
        token = self._next
        start = sign.offset if sign else token.offset
        minus = "-" if sign else ""
        if token.kind in ("int", "float", "uint") and (sign is None or token.kind != "uint"):
            self._take()
            if (value := _number(token, minus)) is None:
                return self._report(start, f"invalid {'double' if token.kind == 'float' else token.kind} literal")
            return Literal(start, value)
        if sign is None and token.kind in ("string", "bytes", "true", "false", "null"):
            self._take()
            if token.kind in ("string", "bytes"):
                return self._quoted(token)
            return Literal(start, {"true": True, "false": False, "null": None}[token.kind])
        raise self._unexpected("an expression")

    def _quoted(self, token: Token) -> Expression:
        try:
            value = text_of(token.text) if token.kind == "string" else bytes_of(token.text[1:])
        except BadLiteral as problem:
            return self._report(token.offset, str(problem))
        return Literal(token.offset, value)

    def _call(self, offset: int, function: str, *args: Expression) -> Expression:
        return _deeper(Call(offset, function, None, list(args)), *args)

    def _expanded(self, offset: int, function: str, target: Expression | None, args: list[Expression]) -> Expression:
        """The call, or what the macro of its name makes of it."""
        call: Expression = Call(offset, function, target, args)
        if (expand := self._macros.get((function, len(args), target is not None))) is not None:
            try:
                call = expand(offset, target, args) or call
            except MacroMistake as mistake:
                return self._report(mistake.offset, mistake.message)
        return _deeper(call, *args, by=0) if target is None else _deeper(call, target, *args)


def _number(token: Token, sign: str) -> Any:
    """The value, or None where the literal is beyond the range of its type."""
    if token.kind == "float":
        value = float(sign + token.text)
        return None if math.isinf(value) else value
    digits = token.text.rstrip("uU")
    hexadecimal = digits.startswith("0x")
    digits = digits.removeprefix("0x").lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:  # far beyond the range; int() refuses to read thousands
        return None
    number = int(sign + digits, 16 if hexadecimal else 10)
    least, beyond = _RANGES[token.kind]
    if not least <= number < beyond:
        return None
    return Uint(number) if token.kind == "uint" else number


def _deeper(node: _Any, *inside: Expression, by: int = 1) -> _Any:
    """The node, with the depth of what is in it, and one more where upstream's parser recurs."""
    node.depth = max((each.depth for each in inside), default=0) + by
    return node


def _balanced(function: str, terms: list[Expression], operators: list[int]) -> Expression:
    def tree(low: int, high: int) -> Expression:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else tree(low, middle - 1)
        right = terms[middle + 1] if middle == high else tree(middle + 1, high)
        return _deeper(Call(operators[middle], function, None, [left, right]), left, right, by=0)

    return terms[0] if len(terms) == 1 else tree(0, len(operators) - 1)
