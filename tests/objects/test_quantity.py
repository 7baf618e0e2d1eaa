"""Quantities, as upstream's parser reads them: the table holds its result for each text."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.quantity import BadQuantity, amount, exact, milli, whole

READ = {
    "0": (0, 0),
    "1": (1000, 1),
    "+1": (1000, 1),
    "-1": (-1000, -1),
    "1.": (1000, 1),
    ".5": (500, 1),
    "0.5": (500, 1),
    "00012": (12000, 12),
    "-1.5": (-1500, -2),
    "1.0001": (1001, 2),
    "3.0000000001": (3001, 4),
    "0.0000000001": (1, 1),
    "1n": (1, 1),
    "100u": (1, 1),
    "0.1m": (1, 1),
    "100m": (100, 1),
    "1k": (10**6, 10**3),
    "1M": (10**9, 10**6),
    "1G": (10**12, 10**9),
    "1T": (10**15, 10**12),
    "1P": (10**18, 10**15),
    "1Ki": (1024_000, 1024),
    "1.5Ki": (1536_000, 1536),
    "1Mi": (2**20 * 1000, 2**20),
    "1.5Gi": (1610612736000, 1610612736),
    "1Pi": (2**50 * 1000, 2**50),
    "2e3": (2_000_000, 2000),
    "2E3": (2_000_000, 2000),
    "1e+3": (1_000_000, 1000),
    "1E-3": (1, 1),
    "1e-999": (1, 1),
    "12345678901234567890n": (12345678901235, 12345678902),
    "9007199254740993m": (9007199254740993, 9007199254741),
}


@pytest.mark.parametrize(("text", "values"), READ.items(), ids=READ.keys())
def test_every_notation_is_read_and_rounded_up(text, values):
    assert (milli(text), whole(text)) == values


@pytest.mark.parametrize("suffix", ["1E", "1Ei", "5000P", "1.1Ei"])
def test_the_greatest_suffixes_are_known(suffix):
    assert whole(suffix) >= 10**18


MOST = 2**63 - 1


@pytest.mark.parametrize("text", ["8Ei", "100E", "9223372036854775808", "1e999", "1e99999999999", "9" * 1000])
def test_what_is_too_great_is_the_most(text):
    assert (whole(text), whole(f"-{text[:999]}"), milli(text)) == (MOST, -MOST, MOST)


def test_a_great_value_is_still_a_number_that_one_can_compute_with():
    assert float(exact("1e99999999")) == float(exact("9" * 1000)) == 1e300
    assert exact("1e-99999999") == Fraction(1, 10**9)
    assert exact("0e99999999") == 0
    assert exact("9Ei") == MOST, "upstream caps binary suffixes"


BAD = ["", ".", "m", "Ki", "e3", "1e", "1e+", "1ee3", "1e3Ki", "1e3.5", "1K", "1ki", "1mi", " 1", "1 ", "1\n"]
BAD += [
    "١",
    "1_0",
    "1,5",
    "1.2.3",
    "0x10",
    "--1",
    "+-1",
    "one",
    "inf",
    "nan",
    "9" * 1001,
    "1" * 1_000_000,
    "1e" + "9" * 30,
]


@pytest.mark.parametrize("text", BAD, ids=lambda text: repr(text)[:20])
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(BadQuantity, match="is not a quantity"):
        exact(text)


def test_a_long_text_is_cut_in_the_message():
    with pytest.raises(BadQuantity) as bad:
        exact("x" * 10_000)
    assert len(str(bad.value)) < 200


def test_json_numbers_are_quantities_too():
    assert (whole(2), milli(0.5), whole(1e3), whole(1e30)) == (2, 500, 1000, MOST)


def test_a_cpu_is_counted_in_thousandths_and_all_else_in_pieces():
    assert (amount("cpu", "1500m"), amount("memory", "1500m"), amount("example.com/gpu", "2")) == (1500, 2, 2)


SCALE: dict[str, int | Fraction] = {
    "": 1,
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "e2": 100,
    "E-2": Fraction(1, 100),
}


@given(st.decimals(0, 10**6, places=6), st.sampled_from(list(SCALE)))
def test_a_quantity_is_its_number_times_its_suffix(number, suffix):
    value = Fraction(number) * SCALE[suffix]
    text = f"{number:f}{suffix}"
    assert exact(text) == value
    assert whole(text) == math.ceil(value)
    assert milli(text) == math.ceil(value * 1000)
    assert whole(f"-{text}") == -whole(text)


@given(st.text(alphabet="0123456789.eE+-numkKMGi", max_size=12))
def test_any_text_is_a_quantity_or_refused(text):
    try:
        value = exact(text)
    except BadQuantity:
        return
    assert 0 <= whole(text) - value < 1 or 0 <= value - whole(text) < 1 or abs(whole(text)) == MOST


@given(
    st.from_regex(r"[0-9]{1,22}(m|Ki|Mi|Gi|Ti|k|M)?", fullmatch=True) | st.text("0123456789mKMGTi.eE+-٣", max_size=6)
)
def test_what_is_read_quickly_is_read_right(text):
    def read(how):
        try:
            return how(text)
        except BadQuantity:
            return BadQuantity

    most = 2**63 - 1
    value = read(exact)
    if value is BadQuantity:
        assert (read(milli), read(whole)) == (BadQuantity, BadQuantity)
    elif value >= 0:
        assert read(milli) == min(-(-value * 1000 // 1), most)
        assert read(whole) == min(-(-value // 1), most)
