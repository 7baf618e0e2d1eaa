"""Contenders by name or by command; mistakes are reported at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.bench.e2e.contenders import BARE, bare_job, find_contenders
from mooring.client import Connection
from mooring.config import load_configuration
from mooring.plugins.catalogue import catalogue

MISTAKES = {
    "moorin": 'Did you mean "mooring"?',
    "other=": "the command is empty",
    "other=run 'x": "the command cannot be read: No closing quotation",
    "other=run {kubecfg}": "{kubecfg} is not known; the fields are {kubeconfig}, {config}, {dir}",
    "bare=run": '"bare" is the name of the client that only posts bindings',
    "=run": "is neither mooring, kube-scheduler nor NAME=COMMAND.",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=MISTAKES.keys())
def test_a_mistake_names_what_would_be_right(text: str, message: str):
    with pytest.raises(OperatorMistake) as mistake:
        find_contenders([text], with_bare=False)
    (problem,) = mistake.value.problems
    assert message in problem.message


def test_a_name_is_given_once():
    with pytest.raises(OperatorMistake, match='"mooring" is given twice'):
        find_contenders(["mooring", "mooring"], with_bare=False)


def test_a_command_is_filled_in(tmp_path: Path):
    (contender,) = find_contenders(["other=run --config={config} 'a b' {dir}/x {kubeconfig}"], with_bare=False)
    config = tmp_path / "config.yaml"
    expected = ["run", f"--config={config}", "a b", f"{tmp_path}/x", "/a/kubeconfig"]
    assert contender.command_for(Path("/a/kubeconfig"), tmp_path) == expected
    loaded = load_configuration(config.read_text(), source="config.yaml", registry=catalogue())
    assert not loaded.warnings


def test_the_bare_client_runs_first():
    assert [each.name for each in find_contenders(["mooring"], with_bare=True)] == [BARE, "mooring"]


def test_the_job_of_the_bare_client_has_what_a_connection_needs():
    connection = Connection(server="https://127.0.0.1:1/", source="test", token="t", ca_data=b"pem")
    job = bare_job(connection, ["a", "b"], ["n"])
    assert json.loads(json.dumps(job)) == job
    assert (job["server"], job["ca"], job["pods"], job["inFlight"]) == ("https://127.0.0.1:1", "cGVt", ["a", "b"], 64)
