"""Random cases depend on family, seed and number alone, and are those that were recorded."""

from __future__ import annotations

import json

import pytest

from mooring_conformance.cases import RECORDED, read
from mooring_conformance.generate import FAMILIES, generate

SEED_OF_THE_RECORDED = "1"


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_recorded_cases_can_be_made_again(family):
    lines = read(RECORDED / f"{family}.jsonl.xz")
    for number in range(0, len(lines), 40):
        assert generate(family, SEED_OF_THE_RECORDED, number) == json.loads(lines[number])["case"]


def test_another_seed_makes_another_case():
    assert generate("taints", "2", 0) != generate("taints", "3", 0)
