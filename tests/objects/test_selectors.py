"""Label selectors: what matches, and the text form, as upstream's parser reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.selectors import (
    BadSelector,
    LabelSelector,
    LabelSelectorRequirement,
    parse_selector,
    requirement_matches,
    selects,
)

MATCHES = {
    "In holds for a listed value": ("In", ["a", "b"], "a", True),
    "In fails for another value": ("In", ["a", "b"], "c", False),
    "In fails without the label": ("In", ["a"], None, False),
    "NotIn fails for a listed value": ("NotIn", ["a"], "a", False),
    "NotIn holds for another value": ("NotIn", ["a"], "b", True),
    "NotIn holds without the label": ("NotIn", ["a"], None, True),
    "Exists holds for any value": ("Exists", [], "", True),
    "Exists fails without the label": ("Exists", [], None, False),
    "DoesNotExist holds without the label": ("DoesNotExist", [], None, True),
    "DoesNotExist fails for any value": ("DoesNotExist", [], "", False),
    "Gt compares numbers, not text": ("Gt", ["9"], "10", True),
    "Gt fails for the same number": ("Gt", ["10"], "10", False),
    "Lt holds for a smaller one": ("Lt", ["10"], "-3", True),
    "Lt fails without the label": ("Lt", ["10"], None, False),
    "Gt fails for a label that is no number": ("Gt", ["1"], "many", False),
    "Gt fails for a bound that is no number": ("Gt", ["few"], "2", False),
    "Gt fails for two bounds": ("Gt", ["1", "2"], "3", False),
    "Gt fails beyond 64 bits": ("Gt", ["1"], str(2**63), False),
    "Gt fails for thousands of digits": ("Gt", ["9" * 5000], "10", False),
    "zeros in front do not count": ("Gt", ["0" * 5000 + "9"], "10", True),
    "Gt fails for digits that are not ASCII": ("Gt", ["1"], "٣", False),
    "an unknown operator matches nothing": ("Like", ["a"], "a", False),
}


@pytest.mark.parametrize(("operator", "values", "label", "holds"), MATCHES.values(), ids=MATCHES.keys())
def test_a_requirement_holds_as_in_kubernetes(operator, values, label, holds):
    assert requirement_matches("key", operator, values, {} if label is None else {"key": label}) is holds


def test_an_empty_selector_matches_everything():
    assert LabelSelector().matches({})
    assert LabelSelector().matches({"a": "b"})


def test_every_part_of_a_selector_must_hold():
    selector = LabelSelector(
        match_labels={"app": "web"},
        match_expressions=(LabelSelectorRequirement(key="tier", operator="NotIn", values=("db",)),),
    )
    assert selector.matches({"app": "web"})
    assert not selector.matches({"app": "web", "tier": "db"})
    assert not selector.matches({"tier": "front"})


def test_equal_selectors_have_equal_requirements():
    def part(key: str, *values: str) -> LabelSelectorRequirement:
        return LabelSelectorRequirement(key=key, operator="In", values=tuple(values))

    one = LabelSelector(match_labels={"a": "1"}, match_expressions=(part("b", "2", "3"),))
    other = LabelSelector(match_expressions=(part("b", "3", "2"), part("a", "1")))
    assert one.requirements() == other.requirements()
    assert hash(one.requirements()) == hash(other.requirements())


TEXTS = {
    "": [],
    "a": [("a", "Exists", ())],
    "!a": [("a", "DoesNotExist", ())],
    "! a": [("a", "DoesNotExist", ())],
    "a=b": [("a", "In", ("b",))],
    "a==b": [("a", "In", ("b",))],
    "a!=b": [("a", "NotIn", ("b",))],
    "a=": [("a", "In", ("",))],
    "a!=": [("a", "NotIn", ("",))],
    "a in (b,c)": [("a", "In", ("b", "c"))],
    "a in (b, c )": [("a", "In", ("b", "c"))],
    "a in(b)": [("a", "In", ("b",))],
    "a in ()": [("a", "In", ("",))],
    "a notin (b)": [("a", "NotIn", ("b",))],
    "a>1": [("a", "Gt", ("1",))],
    "a < 2": [("a", "Lt", ("2",))],
    "in": [("in", "Exists", ())],
    "in in (in)": [("in", "In", ("in",))],
    "x.y/z=v": [("x.y/z", "In", ("v",))],
    " a = b , c ": [("a", "In", ("b",)), ("c", "Exists", ())],
    "a=b,c!=d,e in (f,g),h,!i": [
        ("a", "In", ("b",)),
        ("c", "NotIn", ("d",)),
        ("e", "In", ("f", "g")),
        ("h", "Exists", ()),
        ("i", "DoesNotExist", ()),
    ],
}


@pytest.mark.parametrize(("text", "requirements"), TEXTS.items(), ids=TEXTS.keys())
def test_selector_text_is_read_as_kubectl_sends_it(text, requirements):
    assert parse_selector(text) == requirements


BAD = ["a=b,", "a,,b", ",", "a in b", "a in (b", "a b", "=b", "!a=b", "(a)", "a=b=c", "a!b", "a=(b)", "a=b c", "a=!b"]
BAD += ["-a", "a=-b", "a/b/c=d", "a>", "a>b", "a>1.5", "a inn (b)", "k" * 64, "a=" + "v" * 64]


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:12])
def test_selector_text_that_upstream_refuses_is_refused(text):
    with pytest.raises(BadSelector, match="unable to parse requirement"):
        parse_selector(text)


KEYS, VALUES = st.sampled_from(["a", "b", "example.com/c", "in"]), st.sampled_from(["", "x", "y", "z-1", "notin"])
labels = st.dictionaries(KEYS, VALUES, max_size=3)
parts = st.builds(
    lambda key, operator, values: LabelSelectorRequirement(
        key=key, operator=operator, values=values if operator in ("In", "NotIn") else []
    ),
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(VALUES, min_size=1, max_size=3),
)
FORMS = {"In": "{0} in ({1})", "NotIn": "{0} notin ({1})", "Exists": "{0}", "DoesNotExist": "!{0}"}


@given(labels, st.lists(parts, max_size=3), labels)
def test_the_text_form_selects_what_the_object_form_selects(match_labels, match_expressions, these):
    selector = LabelSelector(match_labels=match_labels, match_expressions=match_expressions)
    text = ",".join(
        [f"{key}={value}" for key, value in match_labels.items()]
        + [FORMS[part.operator].format(part.key, ",".join(part.values)) for part in match_expressions]
    )
    assert selects(parse_selector(text), these) is selector.matches(these)
    assert selects(selector.requirements(), these) is selector.matches(these)
