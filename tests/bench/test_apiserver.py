"""The benchmark of the embedded API server runs and counts what it says."""

from click.testing import CliRunner

from mooring.bench.__main__ import main
from mooring.bench.apiserver import measure


def test_every_watcher_sees_every_pod_that_is_created():
    figure = measure(pods=20, watchers=2, in_flight=4)
    assert (figure.pods, figure.events_seen) == (20, 40)
    assert figure.server_micros > 0


def test_both_benchmarks_are_subcommands():
    answer = CliRunner().invoke(main, ["--help"])
    assert answer.exit_code == 0
    assert "apiserver" in answer.output
    assert "decide" in answer.output


def test_decisions_are_measured_by_their_subcommand():
    answer = CliRunner().invoke(main, ["decide", "--nodes", "2", "--pods", "2", "--workload", "basic"])
    assert answer.exit_code == 0
    assert answer.output.splitlines()[1].split()[:2] == ["basic", "2"]
