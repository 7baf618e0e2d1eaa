"""What holds for all values: arithmetic, order, equality, logic, literals, costs."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cel import CelError, Environment, types
from mooring.cel.budget import Meter
from mooring.cel.conversions import double_text
from mooring.cel.library.quantity import Quantity
from mooring.cel.library.semver import parsed_version
from mooring.cel.times import duration_text, parsed_duration, parsed_timestamp, timestamp_text
from mooring.cel.values import INT_LEAST, INT_MOST, Duration, Timestamp, compare, equal

INTS = st.integers(INT_LEAST, INT_MOST)
NUMBERS = Environment({"a": types.INT, "b": types.INT})
ANYTHING = Environment({"a": types.DYN, "b": types.DYN, "c": types.DYN})
SCALARS = st.one_of(
    INTS, st.booleans(), st.text(max_size=3), st.floats(allow_nan=False), st.none(), st.binary(max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)


def outcome(environment: Environment, expression: str, **values: Any) -> Any:
    try:
        return environment.compile(expression).evaluate(values)
    except CelError as problem:
        return str(problem)


@pytest.mark.parametrize(
    ("operator", "exact"),
    [("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)],
    ids=["sum", "difference", "product"],
)
@given(INTS, INTS)
def test_arithmetic_is_exact_or_an_overflow(operator: str, exact: Any, a: int, b: int) -> None:
    result = exact(a, b)
    expected = result if INT_LEAST <= result <= INT_MOST else "integer overflow"
    assert outcome(NUMBERS, f"a {operator} b", a=a, b=b) == expected


@given(INTS, INTS.filter(bool))
def test_quotient_and_remainder_make_the_number_again(a: int, b: int) -> None:
    if (a, b) == (INT_LEAST, -1):
        assert outcome(NUMBERS, "a / b", a=a, b=b) == "integer overflow"
    else:
        assert outcome(NUMBERS, "a / b * b + a % b", a=a, b=b) == a


@given(VALUES)
def test_everything_equals_itself(value: Any) -> None:
    assert equal(value, value)
    assert outcome(ANYTHING, "a == b && !(a != b)", a=value, b=value, c=None) is True


@given(VALUES, VALUES)
def test_equality_is_symmetric(one: Any, other: Any) -> None:
    assert equal(one, other) is equal(other, one)


@given(st.one_of(INTS, st.floats(allow_nan=False)), st.one_of(INTS, st.floats(allow_nan=False)))
def test_order_and_equality_of_numbers_agree(one: float, other: float) -> None:
    assert compare(one, other) == -compare(other, one)
    assert equal(one, other) is (compare(one, other) == 0)


@pytest.mark.parametrize("operator", ["&&", "||"])
@given(st.lists(st.sampled_from(["true", "false", "a.missing"]), min_size=3, max_size=3))
def test_the_order_of_terms_does_not_matter(operator: str, terms: list[str]) -> None:
    outcomes = {outcome(ANYTHING, f" {operator} ".join(order), a={}, b=None, c=None) for order in permutations(terms)}
    assert len(outcomes) == 1


@given(st.lists(INTS, max_size=5), INTS)
def test_all_is_not_exists_not(numbers: list[int], bound: int) -> None:
    every = outcome(ANYTHING, "a.all(x, x < b)", a=numbers, b=bound, c=None)
    some = outcome(ANYTHING, "!a.exists(x, !(x < b))", a=numbers, b=bound, c=None)
    assert every is some is all(number < bound for number in numbers)


@given(st.text(max_size=20))
def test_text_comes_back_from_its_quoted_form(text: str) -> None:
    environment = Environment({"s": types.STRING})
    quoted = environment.compile("strings.quote(s)").evaluate({"s": text})
    assert environment.compile(quoted).evaluate({"s": ""}) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_comes_back_from_its_text(number: float) -> None:
    assert float(double_text(number)) == number


@given(st.integers(-(10**9), 10**9).map(lambda quarters: quarters * 250_000_000))
def test_a_duration_comes_back_from_its_text(nanoseconds: int) -> None:
    assert parsed_duration(duration_text(Duration(nanoseconds))) == Duration(nanoseconds)


@given(st.integers(-62_135_596_800 * 10**9, 253_402_300_799 * 10**9))
def test_a_timestamp_comes_back_from_its_text(nanoseconds: int) -> None:
    assert parsed_timestamp(timestamp_text(Timestamp(nanoseconds))) == Timestamp(nanoseconds)


QUANTITIES = st.builds(
    lambda number, suffix: (f"{number}{suffix}", suffix),
    st.integers(-(10**6), 10**6),
    st.sampled_from(["", "m", "k", "Ki", "M", "Mi", "G"]),
)
FACTORS = {"": 10**3, "m": 1, "k": 10**6, "Ki": 1024 * 10**3, "M": 10**9, "Mi": 2**20 * 10**3, "G": 10**12}


@given(QUANTITIES, QUANTITIES)
def test_quantities_have_the_order_of_their_values(one: tuple[str, str], other: tuple[str, str]) -> None:
    def milli(text: str, suffix: str) -> int:
        return int(text.removesuffix(suffix)) * FACTORS[suffix]

    left, right = Quantity.parsed(one[0]), Quantity.parsed(other[0])
    assert (left < right) is (milli(*one) < milli(*other))
    assert (left == right) is (milli(*one) == milli(*other))


def test_versions_have_the_order_of_the_standard() -> None:
    texts = [
        *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1"),
        *("1.0.0", "1.0.1", "2.0.0"),
    ]
    versions = [parsed_version(text) for text in texts]
    assert all(one < other for one, other in combinations(versions, 2))


@given(st.lists(INTS, max_size=4), INTS)
def test_counting_changes_no_value(numbers: list[int], bound: int) -> None:
    environment = Environment({"n": types.INT})
    written = ", ".join(map(str, numbers))
    program = environment.compile(f"[{written}].filter(x, x < n).map(x, x / 2).size() + [{written}].size()")
    meter = Meter(None)
    assert program.measure([bound], meter) == program.run([bound])
    assert meter.cost > 0
