"""Every recorded decision of kube-scheduler v1.36.4 is ours too: in both forms, and after a detour."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring_conformance.cases import RECORDED, community_files, family_of, numbered, recorded_files
from mooring_conformance.generate import FAMILIES
from mooring_conformance.known_bad_cases import KNOWN_BAD_CASES
from mooring_conformance.reporting import shown
from mooring_conformance.running import Options, run

RULES = Path(__file__).parents[1] / "data" / "conformance" / "rules.jsonl.xz"


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_every_recorded_case_agrees(family):
    report = run(family, list(numbered(RECORDED / f"{family}.jsonl.xz")), Options())
    assert report.cases == 400
    different = [shown(each) for each in report.differing if each.name not in KNOWN_BAD_CASES]
    assert not different, f"{len(different)} of {report.cases} differ\n" + "\n".join(different[:5])


@pytest.mark.parametrize("file", community_files(), ids=family_of)
def test_every_recorded_case_of_a_community_plugin_agrees(file):
    report = run(family_of(file), list(numbered(file)), Options())
    assert report.cases == 300
    different = [shown(each) for each in report.differing if each.name not in KNOWN_BAD_CASES]
    assert not different, f"{len(different)} of {report.cases} differ\n" + "\n".join(different[:5])


def test_every_rule_that_was_learnt_from_a_difference_holds():
    """The first six cases once differed; the others are random variations of them."""
    report = run("rules", list(numbered(RULES)), Options())
    assert report.cases == 1206
    different = [shown(each) for each in report.differing]
    assert not different, f"{len(different)} of {report.cases} differ\n" + "\n".join(different[:5])


def test_each_family_that_can_be_generated_is_recorded():
    of_kube_scheduler = set(recorded_files()) - set(community_files())
    assert {file.name for file in of_kube_scheduler} == {f"{family}.jsonl.xz" for family in FAMILIES}


def test_no_recorded_case_is_known_to_be_wrong():
    assert KNOWN_BAD_CASES == {}
