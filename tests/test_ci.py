"""How CI judges the tests: few failures run once more and go into a ledger, many are red; exploring varies all."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

ROOT = Path(__file__).parents[1]


def script(path: str) -> ModuleType:
    name = path.rpartition("/")[2].replace("-", "_")
    loader = SourceFileLoader(name, str(ROOT / path))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module


judge, explore = script(".ci/judge"), script("scripts/explore-tests")


class Suite:
    """Fails in these tests at its first run, and in those at its second."""

    def __init__(self, *runs: list[str] | int) -> None:
        self._runs = list(runs)
        self.pytest_args: list[list[str]] = []

    def __call__(self, suite: str, pytest_args: list[str], failed_tests: Path) -> int:
        self.pytest_args.append(pytest_args)
        outcome = self._runs.pop(0)
        if isinstance(outcome, int):
            return outcome
        failed_tests.write_text(json.dumps([{"test": test, "log": f"log of {test}"} for test in outcome]))
        return 2 if outcome else 0


def ledger(output: Path) -> list[tuple[str, bool]]:
    file = output / "unsteady.jsonl"
    return [(line["test"], line["passed"]) for line in map(json.loads, file.read_text().splitlines())]


JUDGED = {
    "a suite that passes leaves no ledger": (Suite([]), 0, None),
    "a test that passes at its second run is green and in the ledger": (Suite(["a"], []), 0, [("a", True)]),
    "a test that fails twice is red": (Suite(["a", "b"], ["b"]), 2, [("a", True), ("b", False)]),
    "three failures run again": (Suite(["a", "b", "c"], []), 0, [("a", True), ("b", True), ("c", True)]),
    "four failures are red at once": (Suite(["a", "b", "c", "d"]), 2, None),
    "a suite that could not run is red at once": (Suite(2), 2, None),
    "a rerun that could not run vindicates no test": (Suite(["a"], 2), 2, [("a", False)]),
}


@pytest.mark.parametrize(("suite", "code", "written"), JUDGED.values(), ids=JUDGED.keys())
def test_a_suite_is_judged(tmp_path, suite, code, written):
    assert judge.judge("test", tmp_path, suite) == code
    assert not suite._runs
    assert (ledger(tmp_path) if (tmp_path / "unsteady.jsonl").exists() else None) == written


def test_the_rerun_keeps_seed_and_workers_and_takes_only_what_failed(tmp_path):
    judge.judge("test", tmp_path, suite := Suite(["a"], []))
    first, again = suite.pytest_args
    assert first == ["--randomly-seed=36", "--cache-clear"]
    assert again == ["--randomly-seed=36", "--last-failed", "--last-failed-no-failures=none"]


def test_every_run_has_the_seed_of_hashes_too(tmp_path, monkeypatch):
    called = Mock(return_value=0)
    monkeypatch.setattr(judge.subprocess, "call", called)
    assert judge.make("test", ["--randomly-seed=36", "-x"], tmp_path / "failed.json") == 0
    ((command,), environment) = called.call_args.args, called.call_args.kwargs["env"]
    assert command == ["make", "test", "PYTEST_ARGS=--randomly-seed=36 -x"]
    assert environment["PYTHONHASHSEED"] == "36"
    assert environment["FAILED_TESTS"] == str(tmp_path / "failed.json")


def test_an_entry_of_the_ledger_has_suite_seed_and_log(tmp_path):
    judge.judge("test-real", tmp_path, Suite(["a"], []))
    entry = json.loads((tmp_path / "unsteady.jsonl").read_text())
    assert entry == {"suite": "test-real", "test": "a", "seed": 36, "passed": True, "log": "log of a"}


def test_failures_of_all_workers_are_written_with_their_logs(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.failed_tests"]\n')
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.fixture\ndef broken(): raise OSError('no set-up')\n"
        "def test_good(): pass\n"
        "def test_bad(): print('a clue'); assert 1 == 2\n"
        "def test_without_set_up(broken): pass\n"
    )
    file = tmp_path / "failed.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env={"FAILED_TESTS": str(file)}, capture_output=True, check=False)
    logs = {failure["test"].rpartition("::")[2]: failure["log"] for failure in json.loads(file.read_text())}
    assert logs.keys() == {"test_bad", "test_without_set_up"}
    assert "assert 1 == 2" in logs["test_bad"]
    assert "a clue" in logs["test_bad"]
    assert "no set-up" in logs["test_without_set_up"]


def test_exploring_never_repeats_a_round_and_reports_those_that_failed(capsys):
    times, rounds = iter([0, 10, 20, 30, 61]), []

    def run(chosen) -> int:
        rounds.append(chosen)
        return 1 if len(rounds) == 2 else 0

    failed = explore.explore(60, ["tests/queue"], random.Random(1), run, lambda: next(times))
    assert len({chosen.seed for chosen in rounds}) == len(rounds) == 4
    assert failed == [rounds[1]]
    assert f"PYTHONHASHSEED={rounds[1].seed}" in capsys.readouterr().out.rpartition("4 rounds, 1 failed")[2]


def test_exploring_runs_one_round_however_little_time_there_is():
    rounds = iter([0])
    assert explore.explore(0, [], random.Random(1), lambda _: next(rounds), lambda: 5.0) == []
    assert next(rounds, None) is None
