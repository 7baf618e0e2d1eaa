"""YAML as Kubernetes reads it, with the place of every value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.errors import OperatorMistake
from mooring.config.tree import Tree, read_tree, written

SCALARS = {
    "y is true": ("y", True),
    "No is false": ("No", False),
    "on is true": ("on", True),
    "a quoted boolean is text": ('"on"', "on"),
    "a tilde is null": ("~", None),
    "an octal with o": ("0o777", 511),
    "an octal of old": ("017", 15),
    "a hexadecimal": ("0x1F", 31),
    "a binary": ("0b101", 5),
    "an exponent": ("1e3", 1000),
    "a fraction": ("1.5", 1.5),
    "a whole fraction": ("5.0", 5),
    "underscores in a number": ("1_000", 1000),
    "a time of day is text": ("12:30:45", "12:30:45"),
    "a date is text": ("2024-01-01", "2024-01-01"),
    "an equals sign is text": ("=", "="),
    "a tagged string": ("!!str 5", "5"),
    "a tagged number": ('!!int "5"', 5),
    "a version is text": ("1.2.3", "1.2.3"),
}


@pytest.mark.parametrize(("text", "value"), SCALARS.values(), ids=SCALARS.keys())
def test_scalars_mean_what_they_mean_to_kubernetes(text, value):
    found = read_tree(f"key: {text}", "file").plain()["key"]
    assert found == value
    assert type(found) is type(value)


def test_every_value_knows_its_path_and_line():
    tree = read_tree("profiles:\n- name: a\n  plugins:\n    score: 1\n", "file")
    score = tree.fields["profiles"].items[0].fields["plugins"].fields["score"]
    assert (score.path, score.line) == ("profiles[0].plugins.score", 4)


def test_json_is_read_too():
    assert read_tree('{"a": [1, "2", null, true]}', "file").plain() == {"a": [1, "2", None, True]}


def test_merge_keys_give_way_to_what_is_written():
    text = "base: &base {a: 1, b: 1}\nall:\n  <<: *base\n  b: 2\n"
    assert read_tree(text, "file").plain()["all"] == {"a": 1, "b": 2}


UNREADABLE = {
    "no document": ("", "empty"),
    "only a comment": ("# nothing", "empty"),
    "two documents": ("a: 1\n---\nb: 2\n", "2 documents"),
    "a mapping that is not closed": ("a: {b: 1", "expected"),
    "a key given twice": ("a: 1\nb: 2\na: 3\n", '"a" is given twice'),
    "a list as a key": ("[a]: 1", "a key must be a string"),
    "a number that JSON has not": ("a: .inf", "not a number"),
    "a number without end": ("a: 1e999", "too large"),
    "an anchor that contains itself": ("a: &a [*a]", "contains itself"),
    "an unknown tag": ("a: !secret b", "cannot be read"),
    "a merge of what is no mapping": ("a: {<<: [1]}", "merges mappings only"),
    "aliases of aliases": (
        "a: &a [1,2,3,4,5,6,7,8,9]\n"
        + "".join(f"{x}: &{x} [{', '.join([f'*{w}'] * 9)}]\n" for w, x in zip("abcdef", "bcdefg", strict=True)),
        "too many values",
    ),
    "characters that are not text": ("a: \ud800", "not text"),
    "brackets without end": ("[" * 5000, ""),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_configuration_at_all_says_why(text, message):
    with pytest.raises(OperatorMistake, match="file ") as mistake:
        read_tree(text, "file")
    assert message in str(mistake.value)


def test_a_key_given_twice_names_the_second_line():
    with pytest.raises(OperatorMistake) as mistake:
        read_tree("a: 1\nb: 2\na: 3\n", "file")
    assert mistake.value.problems[0].line == 3


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]))
    | st.sampled_from(["y", "no", "1e3", "0o7", "=", "<<", "12:30", ".inf", "~", "", "1_0", "0x", "- a", "a: b", "!x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="ascii", categories=["L"]), min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_what_is_written_reads_back_the_same(value):
    assert read_tree(written({"key": value}), "file").plain() == {"key": value}


def test_a_long_value_is_cut_in_messages():
    assert len(Tree("x" * 500, "a", 1).shown()) < 100
