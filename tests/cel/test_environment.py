"""An environment of one's own: variables, fields, budget; and the shape of what the parser makes of a text."""

from __future__ import annotations

import pytest

from mooring.cel import CelError, CompileError, Environment, types
from mooring.cel.errors import CostLimitExceeded
from mooring.cel.macros import BINDINGS, MACROS
from mooring.cel.values import Uint

OBJECT = Environment(
    {"self": types.struct("Widget"), "oldSelf": types.DYN},
    {"Widget": {"replicas": types.INT, "labels": types.map_of(types.STRING, types.STRING)}},
)
WIDGET = {"self": {"replicas": 3, "labels": {"app": "web"}}, "oldSelf": {"replicas": 2}}

RULES = {
    "fields of a declared type": ("self.replicas >= 1", True),
    "dynamic values": ("self.replicas >= oldSelf.replicas", True),
    "presence": ("has(self.labels.app) && !has(oldSelf.labels)", True),
    "a loop over a map": ("self.labels.all(k, k.matches('^[a-z]+$'))", True),
    "an optional with a default": ("self.labels[?'tier'].orValue('none') == 'none'", True),
}


@pytest.mark.parametrize(("expression", "value"), RULES.values(), ids=RULES.keys())
def test_rules_about_an_object(expression: str, value: object) -> None:
    assert OBJECT.compile(expression).evaluate(WIDGET) == value


GROUPING = {
    "products before sums": ("1 + 2 * 3", 7),
    "sums before comparisons": ("1 + 1 == 2", True),
    "comparisons before conjunctions": ("1 < 2 && 2 < 3", True),
    "conjunctions before disjunctions": ("true || false && false", True),
    "one rank from left to right": ("10 - 3 - 2", 5),
    "a choice of choices groups to the right": ("false ? 1 : true ? 2 : 3", 2),
    "a sign belongs to the number": ("-9223372036854775808", -(2**63)),
    "two signs are none": ("--1", 1),
    "hexadecimal": ("0x1F", 31),
    "unsigned": ("5u", Uint(5)),
    "a comment ends with the line": ("1 // one\n+ 1", 2),
    "raw text keeps its backslashes": (r"r'\n'.size()", 2),
    "three quotes span lines": ("'''a\nb'''.size()", 3),
    "bytes from escapes": (r"b'\xff\101'", b"\xffA"),
    "a trailing comma": ("[1, 2,].size()", 2),
    "a comma alone": ("[,].size() + {,}.size()", 0),
}


@pytest.mark.parametrize(("expression", "value"), GROUPING.values(), ids=GROUPING.keys())
def test_what_a_text_means(expression: str, value: object) -> None:
    found = Environment({}).compile(expression).evaluate({})
    assert found == value
    assert type(found) is type(value)


def test_a_budget_is_kept_where_the_size_of_variables_is_unknown() -> None:
    environment = Environment({"names": types.list_of(types.STRING)}, cost_limit=100)
    program = environment.compile("names.all(n, n.size() > 0)")
    assert program.is_metered
    assert program.evaluate({"names": ["a"] * 5}) is True
    with pytest.raises(CostLimitExceeded):
        program.evaluate({"names": ["a"] * 50})


METERED = {
    "a comparison stays below the limit": ("names[0] == 'a'", False),
    "so does a loop over a variable": ("names.exists(n, n == 'a')", False),
    "a loop in a loop does not": ("names.exists(n, names.exists(m, names.exists(o, n + m == o)))", True),
    "nor does a loop over a long list": ("[" + ", ".join(["1"] * 4000) + "].exists(n, n == 2)", True),
    "whatever its name is": ("cel.bind(l, [" + ", ".join(["1"] * 4000) + "], l.exists(n, n == 2))", True),
    "text that grows is always metered": ("names[0] + names[1] == 'ab'", True),
    "so is a list that is collected": ("names.map(n, n.size()) == [1]", True),
    "a small pattern is not": ("names[0].matches('^a+$')", False),
    "a large one is": ("names[0].matches('a{100}b{100}')", True),
    "neither is one that a variable holds": ("names[0].matches(names[1])", True),
}


@pytest.mark.parametrize(("expression", "metered"), METERED.values(), ids=METERED.keys())
def test_what_cannot_reach_the_limit_is_not_metered(expression: str, metered: bool) -> None:
    names = {"names": types.list_of(types.STRING)}
    environment = Environment(names, macros={**MACROS, **BINDINGS}, largest_value=10, cost_limit=100_000)
    assert environment.compile(expression).is_metered is metered
    assert not Environment(names, macros={**MACROS, **BINDINGS}).compile(expression).is_metered


SYNTAX_ERRORS = {
    "nothing": ("", "1:0: Syntax error: unexpected end of the expression, expected an expression"),
    "an operand too few": ("1 +", "1:4: Syntax error: unexpected end of the expression, expected an expression"),
    "an operand too many": ("a b", "1:3: Syntax error: unexpected 'b', expected end of the expression"),
    "an open list": ("[1, 2", "1:6: Syntax error: unexpected end of the expression, expected ']'"),
    "two commas": ("[1,,]", "1:4: Syntax error: unexpected ',', expected ']'"),
    "a step to nowhere": ("a.1", "1:2: Syntax error: unexpected '.1', expected end of the expression"),
    "a name that is none": ("a.(b)", "1:3: Syntax error: unexpected '(', expected a field name"),
    "a dot without a name": (".'a'", "1:2: Syntax error: unexpected ''a'', expected a name"),
    "a second line": ("1 ==\n  )", "2:3: Syntax error: unexpected ')', expected an expression"),
    "a character of no token": ("a @ b", "1:3: Syntax error: unexpected character '@'"),
    "an open text": ("a == 'b", "1:6: Syntax error: the string has no end, or an invalid escape sequence"),
    "an unknown escape": (r"'\q'", "1:1: Syntax error: the string has no end, or an invalid escape sequence"),
    "a number of many digits": ("1" * 5000, "1:1: invalid int literal"),
    "and a negative one": ("-" + "9" * 19, "1:1: invalid int literal"),
    "unsigned": ("18446744073709551616u", "1:1: invalid uint literal"),
    "hexadecimal": ("0xFFFFFFFFFFFFFFFFF", "1:1: invalid int literal"),
    "a number beyond all doubles": ("1e999", "1:1: invalid double literal"),
}


@pytest.mark.parametrize(("expression", "error"), SYNTAX_ERRORS.values(), ids=SYNTAX_ERRORS.keys())
def test_a_text_that_is_no_expression_is_refused_at_its_place(expression: str, error: str) -> None:
    with pytest.raises(CompileError) as raised:
        Environment({}).compile(expression)
    assert str(raised.value).split("\n")[0] == f"ERROR: <input>:{error}"


def test_what_was_wrong_before_the_syntax_error_is_reported_with_it() -> None:
    with pytest.raises(CompileError) as raised:
        Environment({}).compile("for + (1")
    places = [line for line in str(raised.value).split("\n") if line.startswith("ERROR")]
    assert places == [
        "ERROR: <input>:1:1: reserved identifier: for",
        "ERROR: <input>:1:9: Syntax error: unexpected end of the expression, expected ')'",
    ]


def test_leading_zeros_do_not_make_a_number_large() -> None:
    assert Environment({}).compile("0" * 5000 + "7").evaluate({}) == 7


DEEP = {
    "parentheses": ("(" * 249 + "1" + ")" * 249, 1),
    "a chain of sums": (" + ".join(["1"] * 251), 251),
    "a chain of calls": ("'a'" + ".trim()" * 250, "a"),
}


@pytest.mark.parametrize(("expression", "value"), DEEP.values(), ids=DEEP.keys())
def test_an_expression_may_be_250_deep(expression: str, value: object) -> None:
    assert Environment({}).compile(expression).evaluate({}) == value


TOO_DEEP = {
    "parentheses": ("(" * 3000 + "1" + ")" * 3000, "expression recursion limit exceeded: 250"),
    "a chain of sums": (" + ".join(["1"] * 3000), "max recursion depth exceeded"),
    "a chain of fields": ("a" + ".b" * 3000, "max recursion depth exceeded"),
}


@pytest.mark.parametrize(("expression", "error"), TOO_DEEP.values(), ids=TOO_DEEP.keys())
def test_nesting_beyond_the_limit_is_an_error_and_not_a_crash(expression: str, error: str) -> None:
    with pytest.raises(CompileError) as raised:
        Environment({}).compile(expression)
    assert str(raised.value) == f"ERROR: <input>:-1:0: {error}"


def test_a_long_chain_of_conditions_is_no_deep_one() -> None:
    assert Environment({}).compile(" && ".join(["true"] * 5000)).evaluate({}) is True


def test_a_variable_of_a_loop_hides_an_outer_one() -> None:
    environment = Environment({"x": types.INT})
    assert environment.compile("[1, 2].map(x, [x + 10].map(x, x + 1)[0] + x) + [x]").evaluate({"x": 7}) == [13, 15, 7]


def test_a_result_that_a_loop_grew_is_not_changed_by_what_is_added_to_it() -> None:
    expression = "[1, 2].map(x, x).map(y, [1, 2].map(x, x) + [y])"
    assert Environment({}).compile(expression).evaluate({}) == [[1, 2, 1], [1, 2, 2]]


def test_a_failure_names_what_is_missing() -> None:
    with pytest.raises(CelError, match=r"^no such key: labels$"):
        OBJECT.compile("oldSelf.labels.app == 'x'").evaluate(WIDGET)
