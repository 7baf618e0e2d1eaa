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


def test_a_simulation_is_measured(mooring: Mooring):
    result = mooring("bench", "simulate", "--nodes=3", "--pods=5", "--json")
    assert result.code == 0, result.err
    figure = json.loads(result.out)
    assert (figure["nodes"], figure["pods"], figure["bound"]) == (3, 5, 5)
    shown = mooring("bench", "simulate", "--nodes=3", "--pods=5")
    assert shown.out.splitlines()[0].split()[:4] == ["workload", "nodes", "pods", "bound"]


def test_the_cores_that_a_sweep_uses_are_measured(mooring: Mooring):
    result = mooring("bench", "sweep", "--runs=2", "--nodes=2", "--pods=2", "--workers=1", "--json")
    assert result.code == 0, result.err
    figure = json.loads(result.out)
    assert (figure["runs"], figure["workers"]) == (2, 1)
    assert figure["cpu_seconds"] > 0
    assert 0 < figure["used_share"] <= 1.5  # threads of libraries may use a second core while a worker starts


def test_a_simulated_workload_that_does_not_exist_is_refused(mooring: Mooring):
    result = mooring("bench", "simulate", "--workload=basik")
    assert result.code == 2
    assert 'Did you mean "basic"?' in result.err
