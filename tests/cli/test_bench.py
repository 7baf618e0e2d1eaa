"""`mooring bench` measures and tells; how long it takes is nobody's test."""

from __future__ import annotations

import json

from tests.cli.conftest import Mooring

SMALL = ("--nodes=2", "--pods=2", "--running=2")


def test_decisions_are_told_as_a_table(mooring: Mooring):
    answer = mooring("bench", "decide", *SMALL, "--workload=basic", "--workload=hetero")
    assert answer.code == 0
    header, *rows = answer.out.splitlines()
    assert header.split()[:6] == ["workload", "nodes", "decide", "assume", "evidence", "pods/s"]
    assert [row.split()[:2] for row in rows] == [["basic", "2"], ["hetero", "2"]]


def test_decisions_are_told_as_json(mooring: Mooring):
    answer = mooring("bench", "decide", *SMALL, "--workload=basic", "--json")
    figure = json.loads(answer.out)
    assert figure["workload"] == "basic"
    assert figure["pods_per_second"] > 0


def test_a_workload_that_is_not_there_is_named(mooring: Mooring):
    answer = mooring("bench", "decide", "--workload=basik")
    assert answer.code == 2
    assert 'there is no workload "basik". Did you mean "basic"?' in answer.err
