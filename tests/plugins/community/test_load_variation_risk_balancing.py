"""LoadVariationRiskBalancing: low and steady loads."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plugins.community.trimaran_loads import cpu, memory, score

from mooring.plugins.community.trimaran import LoadVariationRiskBalancing
from mooring.testing import a_pod

POD = a_pod(cpu="1", memory="2Gi")  # a quarter of the node

CASES = {
    "an idle node is left with what the pod requests": ([*cpu(0), *memory(0)], {}, 100 - 25 / 2),
    "the average counts half": ([*cpu(25), *memory(0)], {}, 75),
    "the deviation counts half": ([*cpu(25, 20), *memory(0)], {}, 65),
    "the worse of CPU and memory counts": ([*cpu(0), *memory(65, 10)], {}, 50),
    "what was not measured does not count": (cpu(25), {}, 75),
    "a margin multiplies the deviation": ([*cpu(25, 20)], {"safe_variance_margin": 2}, 55),
    "a sensitivity takes its root": ([*cpu(25, 25)], {"safe_variance_sensitivity": 2}, 50),
    "a sensitivity of 0 ignores it": ([*cpu(25, 25)], {"safe_variance_sensitivity": 0}, 75),
    "a negative margin counts as 1": ([*cpu(25, 20)], {"safe_variance_margin": -1}, 65),
    "a load beyond the node counts as all of it": (cpu(300), {}, 50),
    "without measurements it is 0": ([], {}, 0),
    "before the first fetch it is 0": (None, {}, 0),
}


@pytest.mark.parametrize(("loads", "arguments", "expected"), CASES.values(), ids=CASES.keys())
def test_the_score_is_what_the_risk_leaves(loads, arguments, expected):
    assert score(LoadVariationRiskBalancing, loads, POD, **arguments) == int(expected + 0.5)


percent = st.floats(0, 120)


@settings(max_examples=50, deadline=None)
@given(percent, percent, percent, st.floats(0, 3), st.floats(0, 3))
def test_both_forms_agree(average, deviation, other, margin, sensitivity):
    arguments = {"safe_variance_margin": margin, "safe_variance_sensitivity": sensitivity}
    score(LoadVariationRiskBalancing, [*cpu(average, deviation), *memory(other)], POD, **arguments)
