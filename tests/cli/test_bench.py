"""`mooring bench` measures and reports; the times themselves are not tested."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Mooring

FORMS = Path(__file__).parents[2] / "examples" / "forms" / "headroom.py"
SMALL = ("--nodes=2", "--pods=2", "--running=2")


def test_decisions_are_reported_as_a_table(mooring: Mooring):
    result = mooring("bench", "decide", *SMALL, "--workload=basic", "--workload=hetero")
    assert result.code == 0
    header, *rows = result.out.splitlines()
    assert header.split()[:6] == ["workload", "nodes", "decide", "assume", "evidence", "pods/s"]
    assert [row.split()[:2] for row in rows] == [["basic", "2"], ["hetero", "2"]]


def test_decisions_are_reported_as_json(mooring: Mooring):
    result = mooring("bench", "decide", *SMALL, "--workload=basic", "--json")
    figure = json.loads(result.out)
    assert figure["workload"] == "basic"
    assert figure["pods_per_second"] > 0


def test_a_plugin_is_measured_in_turn_with_the_profile_without_it(mooring: Mooring):
    plugins = (f"--plugins={FORMS}", "--with=SignedHeadroom")
    result = mooring("bench", "decide", *SMALL, "--workload=basic", *plugins, "--rounds=3", "--json")
    without, added = map(json.loads, result.out.splitlines())
    assert (without["added"], without["share"]) == ([], 1.0)
    assert added["added"] == ["SignedHeadroom"]
    assert added["share"] > 0


def test_a_plugin_of_a_file_that_was_not_read_is_explained(mooring: Mooring):
    result = mooring("bench", "decide", *SMALL, "--with=PlainHeadroom")
    assert result.code == 2
    assert (
        'there is no plugin "PlainHeadroom". No plugin file was read: name the one that has it by --plugins PATH.'
        in (result.err)
    )
    other = mooring("bench", "decide", *SMALL, f"--plugins={FORMS}", "--with=Quiet")
    assert f"Besides those built in and installed, the plugins of {FORMS} were read." in other.err


def test_a_workload_that_is_not_there_is_named(mooring: Mooring):
    result = mooring("bench", "decide", "--workload=basik")
    assert result.code == 2
    assert 'there is no workload "basik". Did you mean "basic"?' in result.err
