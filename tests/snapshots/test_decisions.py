"""Decisions on an anonymized snapshot are those on the original, with names mapped."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.snapshots.decisions import anonymized, case_of, comparable, decision

from mooring_conformance.generate import FAMILIES, generate


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "config"])
@given(number=st.integers(0, 100_000))
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_the_decision_stays(family: str, number: int):
    generated = generate(family, "snapshot", number)
    assume("metadata.name" not in json.dumps(generated["config"]))  # names nodes, which have other names then
    hidden = anonymized(json.loads(json.dumps(generated)))
    assert comparable(decision(hidden.case), hidden) == comparable(decision(case_of(generated)))
