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


def test_the_name_of_the_bare_client_is_taken():
    with pytest.raises(OperatorMistake, match='"bare" has another meaning here'):
        find_contenders(["bare=run"], with_bare=False)


def test_a_command_is_filled_in(tmp_path: Path):
    (contender,) = find_contenders(["other=run --config={config} 'a b' {dir}/x {kubeconfig}"], with_bare=False)
    config = tmp_path / "config.yaml"
    expected = ["run", f"--config={config}", "a b", f"{tmp_path}/x", "/a/kubeconfig"]
    assert contender.command_for(Path("/a/kubeconfig"), tmp_path) == expected
    loaded = load_configuration(config.read_text(), source="config.yaml", registry=catalogue())
    assert not loaded.warnings


def test_known_schedulers_have_the_feature_gates_of_a_workload_on(tmp_path: Path):
    (mooring,) = find_contenders(["mooring"], with_bare=False)
    command = mooring.command_for(Path("/a/kubeconfig"), tmp_path, ("GenericWorkload", "GangScheduling"))
    assert "--feature-gates=GenericWorkload=true,GangScheduling=true" in command


def test_a_command_is_given_the_feature_gates_where_it_names_them(tmp_path: Path):
    (contender,) = find_contenders(["other=run {gates}"], with_bare=False)
    assert contender.command_for(Path("/a/kubeconfig"), tmp_path, ("GenericWorkload",)) == [
        "run",
        "GenericWorkload=true",
    ]


def test_the_bare_client_runs_first():
    assert [each.name for each in find_contenders(["mooring"], with_bare=True)] == [BARE, "mooring"]


def test_the_job_of_the_bare_client_has_what_a_connection_needs():
    connection = Connection(server="https://127.0.0.1:1/", source="test", token="t", ca_data=b"pem")
    job = bare_job(connection, ["a", "b"], ["n"])
    assert json.loads(json.dumps(job)) == job
    assert (job["server"], job["ca"], job["pods"], job["inFlight"]) == ("https://127.0.0.1:1", "cGVt", ["a", "b"], 64)


def test_mooring_is_measured_once_more_with_a_page_open():
    plain, page = find_contenders(["mooring"], with_bare=False, with_page=True)
    assert (plain.has_page, page.has_page) == (False, True)
    assert page.command[:-1] == plain.command
    assert page.command[-1].startswith("--record=")


def test_a_page_is_open_beside_mooring_only():
    with pytest.raises(OperatorMistake, match="--page"):
        find_contenders(["other=run"], with_bare=False, with_page=True)
