"""The messages of errors, and how they are distinguished."""

from __future__ import annotations

import pytest

from mooring.base.errors import (
    ApiError,
    Fault,
    MooringError,
    OperatorMistake,
    PluginFault,
    Problem,
    StateMissing,
    Unreachable,
    did_you_mean,
)


def test_a_mistake_shows_every_problem_with_its_place():
    mistake = OperatorMistake("f.yaml is wrong.", [Problem("a.b", "must be 1", 3), Problem("c", "is missing")])
    assert str(mistake) == "f.yaml is wrong.\n\n  a.b (line 3)\n    must be 1\n\n  c\n    is missing"
    assert mistake.summary == "f.yaml is wrong."
    assert [problem.path for problem in mistake.problems] == ["a.b", "c"]


@pytest.mark.parametrize(("count", "words"), [(1, "1 problem."), (3, "3 problems.")])
def test_the_problems_of_a_source_are_counted(count, words):
    problems = [Problem("a", "is wrong")] * count
    mistake = OperatorMistake.found_in("f.yaml", problems)
    assert mistake.summary == f"f.yaml has {words}"
    assert mistake.problems == tuple(problems)


@pytest.mark.parametrize("error", [ApiError(404, "NotFound", "no such pod"), Unreachable("x"), PluginFault("P", "x")])
def test_what_breaks_while_working_is_a_fault(error):
    assert isinstance(error, Fault)


@pytest.mark.parametrize("kind", [OperatorMistake, Fault, StateMissing])
def test_everything_raised_on_purpose_has_one_root(kind):
    assert issubclass(kind, MooringError)
    assert kind is Fault or not issubclass(kind, Fault)


def test_a_refusal_of_the_api_keeps_its_fields():
    error = ApiError(429, "TooManyRequests", "slow down", retry_after=2)
    assert (error.code, error.reason, error.retry_after, str(error)) == (429, "TooManyRequests", 2, "slow down")


def test_a_plugins_fault_names_the_plugin():
    assert PluginFault("Mine", "it raised").plugin == "Mine"


GUESSES = {
    "a letter too few": ("profils", ["profiles", "plugins"], ' Did you mean "profiles"?'),
    "another case": ("SCHEDULERNAME", ["schedulerName"], ' Did you mean "schedulerName"?'),
    "underscores for capitals": ("scheduler_name", ["schedulerName"], ' Did you mean "schedulerName"?'),
    "nothing near": ("zzz", ["profiles"], ""),
    "nothing known": ("a", [], ""),
}


@pytest.mark.parametrize(("name", "known", "hint"), GUESSES.values(), ids=GUESSES.keys())
def test_a_name_that_is_nearly_right_is_guessed(name, known, hint):
    assert did_you_mean(name, known) == hint
