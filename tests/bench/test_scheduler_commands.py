"""Schedulers by name or by command; mistakes are reported at once."""

from __future__ import annotations

import pytest

from mooring.base.errors import OperatorMistake
from mooring.bench.scheduler_commands import find_commands

FIELDS = ("kubeconfig", "config", "dir")

MISTAKES = {
    "moorin": 'Did you mean "mooring"?',
    "other=": "the command is empty",
    "other=run 'x": "the command cannot be read: No closing quotation",
    "other=run {kubecfg}": "{kubecfg} is not known; the fields are {kubeconfig}, {config}, {dir}",
    "taken=run": '"taken" has another meaning here',
    "=run": "is neither mooring, kube-scheduler nor NAME=COMMAND.",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=MISTAKES.keys())
def test_a_mistake_names_what_would_be_right(text: str, message: str):
    with pytest.raises(OperatorMistake) as mistake:
        find_commands([text], (), FIELDS, reserved=("taken",))
    (problem,) = mistake.value.problems
    assert message in problem.message


def test_a_name_is_given_once():
    with pytest.raises(OperatorMistake, match='"mooring" is given twice'):
        find_commands(["mooring", "mooring"], (), FIELDS)


def test_mooring_is_this_installation_with_the_flags_of_the_benchmark():
    (command,) = find_commands(["mooring"], ("--config={config}",), FIELDS)
    assert command.words[-2:] == ("run", "--config={config}")


def test_a_command_is_filled_in():
    (command,) = find_commands(["other=run --config={config} 'a b' {dir}/x"], (), FIELDS)
    assert command.filled_in({"config": "/c", "dir": "/d"}) == ["run", "--config=/c", "a b", "/d/x"]
    assert command.uses("dir")
    assert not command.uses("kubeconfig")
