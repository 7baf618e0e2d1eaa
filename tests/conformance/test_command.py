"""`mooring conformance`: what it prints, what it ends with, and which files it reads."""

from __future__ import annotations

import gzip
import lzma

import pytest
from tests.conformance.builders import a_case, a_file, a_node, agreeing_decision, recorded

from mooring.cli.main import exit_code
from mooring_conformance import slow
from mooring_conformance.generate import hostile
from mooring_conformance.generate.hostile import Shape

AGREEING = recorded(a_case(a_node("a"), a_node("b"), name="agreeing"))
DIFFERING = recorded(
    case := a_case(a_node("a"), a_node("b"), name="differing"),
    {
        **agreeing_decision(case),
        "nodes": {"a": None, "b": {"plugin": "NodeName", "code": "Unschedulable", "reasons": ["no"]}},
    },
)


def run(*arguments: object) -> int:
    return exit_code(["conformance", "--jobs", "1", *map(str, arguments)])


def test_agreement_ends_with_zero(tmp_path, capsys):
    assert run(a_file(tmp_path, AGREEING, AGREEING)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "family                cases  agree",
        "some                      2      2",
    ]


def test_a_difference_is_shown_side_by_side_and_ends_with_one(tmp_path, capsys):
    assert run(a_file(tmp_path, AGREEING, DIFFERING)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "family                cases  agree",
        "some                      2      1",
        "",
        "  differing (plain, vector, churned)",
        "    node b NodeName",
        "      ours   passes",
        "      theirs NodeName Unschedulable: no",
        "",
    ]


def test_several_files_have_a_sum(tmp_path, capsys):
    files = [a_file(tmp_path, AGREEING, name="one.jsonl"), a_file(tmp_path, DIFFERING, name="two.jsonl")]
    assert run(*files, "--show", 0) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "one                       1      1",
        "two                       1      0",
        "all                       2      1",
    ]


def test_only_the_given_ways_are_run(tmp_path, capsys):
    assert run(a_file(tmp_path, DIFFERING), "--form", "vector", "--no-churn") == 1
    assert "differing (vector)\n" in capsys.readouterr().out


def test_results_of_other_plugins_can_be_left_out(tmp_path):
    assert run(a_file(tmp_path, DIFFERING), "--plugin", "TaintToleration") == 0
    assert run(a_file(tmp_path, DIFFERING), "--plugin", "NodeName") == 1


@pytest.mark.parametrize(("suffix", "opener"), [("gz", gzip.open), ("xz", lzma.open)])
def test_files_may_be_compressed(suffix, opener, tmp_path):
    packed = tmp_path / f"some.jsonl.{suffix}"
    with opener(packed, "wb") as file:
        file.write(a_file(tmp_path, DIFFERING).read_bytes())
    assert run(packed) == 1


MISTAKES = {
    "a file that is not there": (["missing.jsonl"], "missing.jsonl cannot be read: No such file or directory."),
    "a folder": (["."], ". cannot be read: Is a directory."),
    "no xz inside": (["bad.jsonl.xz"], "bad.jsonl.xz cannot be read: Input format not supported"),
    "no gzip inside": (["bad.jsonl.gz"], "bad.jsonl.gz cannot be read: Not a gzipped file"),
    "no JSON inside": (["bad.jsonl"], 'bad.jsonl:1 holds no {"case": …, "expect": …}: JSON is malformed'),
    "no case inside": (["other.jsonl"], 'other.jsonl:1 holds no {"case": …, "expect": …}: Object missing required'),
    "no such family": (["--family", "taint"], '"taint" is none of config, dra,'),
    "no such plugin": (["--plugin", "NodeNam"], 'there is no plugin "NodeNam". Did you mean "NodeName"?'),
    "files and fresh cases": (["bad.jsonl", "--against", "x"], "FILES are run as they are"),
    "a seed for nothing": (["--seed", "1"], "they need --against"),
    "files and slow pods": (["bad.jsonl", "--slow"], "FILES are run as they are"),
    "a family of slow pods": (["--slow", "--family", "dra"], "--slow makes pods of every shape"),
    "a recorder that is not there": (["--against", "./none", "--count", "1"], "the recorder none cannot be started"),
}


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_explained_and_ends_with_two(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("bad.jsonl", "bad.jsonl.xz", "bad.jsonl.gz"):
        (tmp_path / name).write_text("no JSON, and nothing packed")
    (tmp_path / "other.jsonl").write_text('{"text": ""}')
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err


@pytest.fixture
def few_shapes(monkeypatch):
    few = {name: Shape(20, shape.apply) for name, shape in hostile.SHAPES.items() if name in ("disks", "tolerations")}
    monkeypatch.setattr(slow, "SHAPES", few)


def test_a_search_for_slow_pods_prints_the_slowest_of_each_plugin(few_shapes, capsys):
    assert run("--slow", "--count", "2") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["plugin", "ours", "theirs", "ratio"]
    assert all("(200 nodes, 400 pods, seed 1)" in row for row in rows)


def test_a_slow_pod_is_made_small_and_ends_with_one(few_shapes, monkeypatch, capsys):
    monkeypatch.setattr(slow, "SLOW_SECONDS", -1.0)
    assert run("--slow", "--count", "1") == 1
    assert "The smallest pod of this kind takes" in capsys.readouterr().out.splitlines()[-1]
