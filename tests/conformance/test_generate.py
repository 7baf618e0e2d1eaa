"""Random cases depend on family, seed and number alone, and are those that were recorded."""

from __future__ import annotations

import json

import pytest

from mooring_conformance.cases import COMMUNITY, RECORDED, read
from mooring_conformance.generate import FAMILIES, generate
from mooring_conformance.generate.variations import varied_families

SEED_OF_THE_RECORDED = "1"


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_recorded_cases_can_be_made_again(family):
    lines = read(RECORDED / f"{family}.jsonl.xz")
    for number in range(0, len(lines), 40):
        assert generate(family, SEED_OF_THE_RECORDED, number) == json.loads(lines[number])["case"]


def test_another_seed_makes_another_case():
    assert generate("taints", "2", 0) != generate("taints", "3", 0)


@pytest.mark.parametrize("family", varied_families())
def test_a_variation_of_recorded_cases_depends_on_seed_and_number_and_keeps_all_names(family):
    recorded = [json.loads(line)["case"] for line in read(COMMUNITY / f"{family}.jsonl.xz")]
    known = {json.dumps(case | {"name": ""}) for case in recorded}
    fresh = [generate(family, "7", number) for number in range(20)]
    assert fresh == [generate(family, "7", number) for number in range(20)]
    assert sum(json.dumps(case | {"name": ""}) not in known for case in fresh) > 10
    for case in fresh:
        pods = {f"{each['metadata'].get('namespace')}/{each['metadata']['name']}" for each in case["objects"]}
        assert {each["pod"] for each in (*case.get("queue", ()), *case.get("steps", ()))} <= pods
