"""An environment of one's own: variables, fields, budget; and the shape of what the parser makes of a text."""

from __future__ import annotations

import pytest

from mooring.cel import CelError, CompileError, Environment, types
from mooring.cel.bounds import Bounds
from mooring.cel.errors import CostLimitExceeded
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
}


@pytest.mark.parametrize(("expression", "value"), GROUPING.values(), ids=GROUPING.keys())
def test_what_a_text_means(expression: str, value: object) -> None:
    found = Environment({}).compile(expression).evaluate({})
    assert found == value
    assert type(found) is type(value)


def test_a_budget_is_kept_where_the_estimate_says_it_could_be_exceeded() -> None:
    environment = Environment({"names": types.list_of(types.STRING)}, cost_limit=100)
    program = environment.compile("names.all(n, n.size() > 0)")
    assert program.cost.most > 100
    assert program.evaluate({"names": ["a"] * 5}) is True
    with pytest.raises(CostLimitExceeded):
        program.evaluate({"names": ["a"] * 50})


def test_hints_about_sizes_bound_the_estimate() -> None:
    def at_most(path: tuple[str, ...]) -> Bounds | None:
        return {("names",): Bounds(0, 5), ("names", "@items"): Bounds(0, 10)}.get(path)

    unknown = Environment({"names": types.list_of(types.STRING)})
    known = Environment({"names": types.list_of(types.STRING)}, size_hints=at_most)
    expression = "names.exists(n, n.contains('x'))"
    assert known.compile(expression).cost.most < 100 < unknown.compile(expression).cost.most


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
