"""Fresh cases against a recorder: a planted difference is found, shown, made small, and can be run again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.conformance.builders import a_case, a_node

from mooring.base.errors import Fault
from mooring.cli.main import exit_code
from mooring_conformance.recorder import Recorder

ROOT = Path(__file__).parents[2]

AGREES = "expect = agreeing_decision(case)"
TAKES_A_TAINT_FOR_NOTHING = """
expect = agreeing_decision(case)
for item in case["objects"]:
    taints = item.get("spec", {}).get("taints", ())
    if expect.get("nodes") and {"key": "gpu", "effect": "NoSchedule"} in taints:
        expect["nodes"][item["metadata"]["name"]] = None
"""


def a_recorder(folder: Path, rule: str) -> Path:
    """A program that decides as we do, but for the rule."""
    program = folder / "recorder"
    indented = "\n".join(f"    {line}" for line in rule.splitlines())
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.conformance.builders import agreeing_decision\n"
        "for line in sys.stdin:\n"
        "    case = json.loads(line)\n"
        f"{indented}\n"
        "    print(json.dumps(expect), flush=True)\n"
    )
    program.chmod(0o755)
    return program


def run(*arguments: object) -> int:
    return exit_code(["conformance", "--jobs", "1", *map(str, arguments)])


def test_a_recorder_that_agrees_ends_with_zero(tmp_path, capsys):
    assert run("--against", a_recorder(tmp_path, AGREES), "--family", "taints", "--count", 5, "--seed", 3) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "taints                    5      5"


def test_a_planted_difference_is_found_shown_and_shrunk(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program = a_recorder(tmp_path, TAKES_A_TAINT_FOR_NOTHING)
    assert run("--against", program, "--family", "taints", "--count", 20, "--no-churn", "--show", 1) == 1
    printed = capsys.readouterr().out
    assert "theirs passes" in printed
    assert "The smallest case of this kind, added to differing.jsonl:" in printed

    (line,) = Path("differing.jsonl").read_text().splitlines()
    case = json.loads(line)["case"]
    assert [item["kind"] for item in case["objects"]] == ["Node"]
    assert case["objects"][0]["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    assert "tolerations" not in case["pod"]["spec"]
    assert case["config"] is None

    assert run("differing.jsonl") == 1
    assert "node" in capsys.readouterr().out


def test_community_plugins_are_compared_with_a_recorder_of_theirs(tmp_path, capsys):
    assert run("--against", a_recorder(tmp_path, AGREES), "--family", "podstate", "--count", 5) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "podstate                  5      5"


def test_a_recorder_of_other_plugins_is_refused(tmp_path, capsys):
    program = a_recorder(tmp_path, "expect = {'error': 'config: no such plugin'}")
    assert run("--against", program, "--family", "allocatable", "--count", 5) == 2
    assert "it is the recorder of other plugins" in capsys.readouterr().err


BROKEN = {
    "ends": ("sys.exit('out of memory')", "ended before it decided: out of memory."),
    "talks": ("print('hello', flush=True)\nexpect = {}", "wrote what is no JSON object"),
}


@pytest.mark.parametrize(("rule", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_recorder_is_a_fault_with_its_last_words(rule, words, tmp_path):
    with Recorder(a_recorder(tmp_path, rule)) as recorder, pytest.raises(Fault, match=words):
        recorder.record(a_case(a_node("a")))
