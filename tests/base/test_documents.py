"""YAML as Kubernetes reads it, with the place of every value."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.documents import Tree, made, read_tree, read_trees, written
from mooring.base.errors import OperatorMistake

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
    "a number below zero": ("-3", -3),
    "an octal below zero": ("-0o17", -15),
    "a number with a plus": ("+5", 5),
    "a fraction": ("1.5", 1.5),
    "a number beyond 64 bits": ("18446744073709551615", 18446744073709551615),
    "no binary": ("0b12", "0b12"),
    "a quantity is text": ("500m", "500m"),
    "a quoted number is text": ('"5"', "5"),
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


KEYS = {
    "a number": ("1: a", "1"),
    "a hexadecimal": ("0x10: a", "16"),
    "a fraction": ("1.5: a", "1.5"),
    "true": ("true: a", "true"),
    "y": ("y: a", "true"),
    "off": ("off: a", "false"),
    "a quoted y": ('"y": a', "y"),
    "a quoted merge": ('"<<": a', "<<"),
    "a date": ("2024-01-01: a", "2024-01-01"),
}


@pytest.mark.parametrize(("text", "key"), KEYS.values(), ids=KEYS.keys())
def test_keys_are_always_text(text, key):
    assert read_tree(text, "file").plain() == {key: "a"}


BASES = "base: &base {a: 1, b: 1}\nother: &other {b: 5, c: 5}\nall:\n"
MERGES = {
    "what follows the merge holds": ("  <<: *base\n  b: 2\n", {"a": 1, "b": 2}),
    "a merge holds over what stands before it": ("  b: 2\n  <<: *base\n", {"a": 1, "b": 1}),
    "the first of a list holds": ("  <<: [*base, *other]\n", {"a": 1, "b": 1, "c": 5}),
    "the last of two merges holds": ("  <<: *base\n  <<: *other\n", {"a": 1, "b": 5, "c": 5}),
    "a mapping written in place": ("  <<: {d: 1}\n", {"d": 1}),
    "a list of mappings written in place": ("  <<: [{d: 1}]\n", {"d": 1}),
    "a merge with its tag": ("  !!merge <<: {d: 1}\n", {"d": 1}),
}


@pytest.mark.parametrize(("text", "value"), MERGES.values(), ids=MERGES.keys())
def test_merges_are_set_in_the_order_of_the_file(text, value):
    """As sigs.k8s.io/yaml 1.6 reads the same texts."""
    assert read_tree(BASES + text, "file").plain()["all"] == value


def test_an_alias_has_the_path_of_where_it_is_used():
    tree = read_tree("a: &a\n  b: 1\nc: *a\n", "file")
    assert (tree.fields["c"].line, tree.fields["c"].fields["b"].path) == (3, "c.b")
    assert tree.fields["a"].fields["b"] is not tree.fields["c"].fields["b"]


def test_empty_documents_are_left_out():
    trees = read_trees("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n", "file")
    assert [(tree.plain(), tree.line) for tree in trees] == [({"a": 1}, 3), ({"b": 2}, 7)]


@pytest.mark.parametrize("text", ["", "# nothing", "---\n", "null"])
def test_an_empty_file_is_null(text):
    assert read_tree(text, "file").value is None
    assert read_trees(text, "file") == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_bytes_are_read_in_every_encoding_that_yaml_has(encoding):
    assert read_tree("a: größe".encode(encoding), "file").plain() == {"a": "größe"}


def test_the_last_of_a_key_given_twice_holds_where_reading_is_not_strict():
    assert read_tree("a: 1\na: 2\n", "file", strict=False).plain() == {"a": 2}


def test_a_long_file_is_no_bomb():
    assert len(read_tree("\n".join(f"- {{a: {n}}}" for n in range(40_000)), "file").items) == 40_000


def test_the_nearest_place_of_what_is_missing_is_found():
    tree = read_tree("a: 1\nb:\n- c: 2\n- d:\n    e: 3\n", "file")
    assert tree.nearest(("b", 1, "d", "e")).line == 5
    assert tree.nearest(("b", 0, "missing")).line == 3
    assert tree.nearest(("b", 7, "c")).path == "b"
    assert tree.nearest(("a", "x")).path == "a"
    assert tree.nearest(()) is tree


def test_what_is_made_up_takes_the_place_of_what_it_was_made_from():
    tree = made({"a": [1, Tree("kept", "elsewhere", 9)]}, Tree(None, "here", 3))
    [one, kept] = tree.fields["a"].items
    assert (one.path, one.line, kept.path, kept.line) == ("here", 3, "elsewhere", 9)


UNREADABLE = {
    "two documents": ("a: 1\n---\nb: 2\n", "2 documents"),
    "a mapping that is not closed": ("a: {b: 1", "expected"),
    "a key given twice": ("a: 1\nb: 2\na: 3\n", '"a" is given twice'),
    "two keys that mean the same": ("yes: 1\ntrue: 2\n", '"true" is given twice'),
    "a list as a key": ("[a]: 1", "a key must be a string"),
    "nothing as a key": ("~: 1", "a key must be a string"),
    "a number that JSON has not": ("a: .inf", "not a number"),
    "a number without end": ("a: 1e999", "too large"),
    "an anchor that contains itself": ("a: &a [*a]", "contains itself"),
    "an unknown tag": ("a: !secret b", "cannot be read"),
    "a merge of what is no mapping": ("a: {<<: [1]}", "merges mappings only"),
    "a merge of nothing": ("a:\n  <<:\n", "merges mappings only"),
    "bytes that are not text": (b"a: \xff\xfe\xff", "cannot be read"),
    "aliases of aliases": (
        "a: &a [1,2,3,4,5,6,7,8,9]\n"
        + "".join(f"{x}: &{x} [{', '.join([f'*{w}'] * 9)}]\n" for w, x in zip("abcdef", "bcdefg", strict=True)),
        "too many values",
    ),
    "characters that are not text": ("a: \ud800", "not text"),
    "brackets without end": ("[" * 5000, ""),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_not_read_has_a_reason(text, message):
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


SHOWN = {
    "a mapping": {},
    "a list": [],
    "true": True,
    "null": None,
    '"text"': "text",
    "1.5": 1.5,
}


@pytest.mark.parametrize(("shown", "value"), SHOWN.items(), ids=SHOWN.keys())
def test_a_value_is_shown_as_it_would_be_written(shown, value):
    assert Tree(value, "a", 1).shown() == shown


def test_null_is_absent():
    tree = read_tree("a: null\nb: 1\n", "file")
    assert tree.get("a") is None
    assert tree.get("c") is None
    found = tree.get("b")
    assert found is not None
    assert (found.value, found.path, found.line) == (1, "b", 2)


def test_the_base_does_not_need_the_yaml_library():
    program = "import sys, mooring.base, mooring.base.errors, mooring.base.log; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_long_value_is_cut_in_messages():
    assert len(Tree("x" * 500, "a", 1).shown()) < 100
