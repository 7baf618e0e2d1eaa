"""Methods that look like an extension point under a wrong name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.framework.registry import Registry

HEAD = "from mooring.framework import Plugin\n\n\nclass Mine(Plugin):\n"
FILTER = "    def filter(self, pod, node, cycle): ...\n"
LINE_OF_FILTER = 5
SAME_ARGUMENTS = {
    "pre_filter": "pod, cycle",
    "sort_key": "queued",
    "events": "",
    "normalize": "pod, nodes, scores, cycle",
}


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], list[str]]]:
    """Loads a file mine.py with this text in the folder where we are; the plugins that it holds."""
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)

    def load_text(text: str) -> list[str]:
        Path("mine.py").write_text(text)
        return [entry.name for entry in Registry().add_path("mine.py")]

    yield load_text
    for name in set(sys.modules) - known:
        del sys.modules[name]


MISSPELT = {
    "scores": "score",
    "socre": "score",
    "Score": "score",
    "score_node": "score_nodes",
    "Filter": "filter",
    "filternodes": "filter_nodes",
    "prefilter": "pre_filter",
    "preFilter": "pre_filter",
    "PreFilter": "pre_filter",
    "pre_filters": "pre_filter",
    "post_filters": "post_filter",
    "postfilter": "post_filter",
    "normalise": "normalize",
    "NormalizeScore": "normalize",
    "queue_sort": "sort_key",
    "reserves": "reserve",
    "un_reserve": "unreserve",
    "premit": "permit",
    "PreBind": "pre_bind",
    "postbind": "post_bind",
    "event": "events",
    "EventsToRegister": "events",
}


def arguments(meant: str) -> str:
    return ", ".join(part for part in ("self", SAME_ARGUMENTS.get(meant, "pod, node, cycle")) if part)


@pytest.mark.parametrize(("wrong", "meant"), MISSPELT.items())
@pytest.mark.parametrize("others", ["", FILTER], ids=["alone", "beside a good one"])
def test_a_misspelt_point_is_reported_with_its_line_and_the_right_name(load, wrong, meant, others):
    with pytest.raises(OperatorMistake) as mistake:
        load(f"{HEAD}{others}    def {wrong}({arguments(meant)}): ...\n")
    (problem,) = mistake.value.problems
    assert problem.path == f"mine.py:{LINE_OF_FILTER + bool(others)}: Mine.{wrong}"
    assert f'Did you mean "{meant}"?' in problem.message


def test_every_misspelt_point_is_reported_at_once_with_other_breaches(load):
    bad = ["def filter(self, pod): ...", "def scores(self, pod, node, cycle): ...", "def postfilter(self): ..."]
    with pytest.raises(OperatorMistake, match="plugin Mine does not keep the contract") as mistake:
        load(HEAD + "".join(f"    {method}\n" for method in bad))
    assert [problem.path for problem in mistake.value.problems] == [
        "Mine.filter",
        "mine.py:6: Mine.scores",
        "mine.py:7: Mine.postfilter",
    ]


def test_a_misspelt_point_is_found_where_it_is_inherited_from(load):
    base = "class Base:\n    def scores(self, pod, node, cycle): ...\n\n\n"
    with pytest.raises(OperatorMistake) as mistake:
        load(base + HEAD.replace("(Plugin)", "(Base, Plugin)") + FILTER)
    assert mistake.value.problems[0].path == "mine.py:2: Mine.scores"


HELPERS = {
    "a helper with a name of its own": "def free_cores(self, node): ...",
    "a close name with other arguments": "def reserved(self, node): ...",
    "a close name that is private": "def _scores(self, pod, node, cycle): ...",
    "a close name that is an attribute": "scores = {}",
    "a close name that is a property": "@property\n    def scores(self): return {}",
    "a close name beside the point itself": "def filtered(self, pod, nodes, cycle): ...",
    "a close name that is a class": "class Scores: ...",
}


@pytest.mark.parametrize("helper", HELPERS.values(), ids=HELPERS.keys())
def test_other_members_are_the_plugins_own_business(load, helper):
    assert load(f"{HEAD}{FILTER}    {helper}\n") == ["Mine"]


def test_a_base_without_points_beside_its_plugins_is_fine(load):
    base = "class Shared(Plugin):\n    def wanted(self, pod): ...\n\n\n"
    assert load(HEAD.replace("class Mine(Plugin)", f"{base}class Mine(Shared)") + FILTER) == ["Mine"]


def test_a_class_without_any_point_is_named_with_what_there_is(load):
    with pytest.raises(OperatorMistake, match=r"mine\.py holds no plugin") as mistake:
        load(f"{HEAD}    def weigh(self, pod): ...\n")
    (problem,) = mistake.value.problems
    assert problem.path == "mine.py:4: Mine"
    assert "has no method of an extension point; there are pre_enqueue, sort_key" in problem.message


def test_a_class_without_any_point_gets_the_nearest_name_whatever_its_arguments(load):
    with pytest.raises(OperatorMistake, match=r"mine\.py holds no plugin") as mistake:
        load(f"{HEAD}    def scores(self, pod): ...\n")
    assert 'Did you mean "score"?' in mistake.value.problems[0].message


def test_a_class_of_a_module_without_any_point_is_refused(load, monkeypatch, tmp_path):
    (tmp_path / "a_module_of_mine.py").write_text(f"{HEAD}    def scores(self, pod): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OperatorMistake, match="a_module_of_mine:Mine is no plugin") as mistake:
        Registry().add_path("a_module_of_mine:Mine")
    assert 'Did you mean "score"?' in mistake.value.problems[0].message
