"""`mooring run` with input it cannot work with: who is told what, and the exit code."""

import json
import time

import pytest
from tests.cli.conftest import NOWHERE, Mooring, write

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_ELECTION = CONFIG + "leaderElection: {leaderElect: false}\n"


def test_a_kubeconfig_that_points_nowhere_is_a_fault_that_names_host_and_file(mooring: Mooring):
    began = time.monotonic()
    answer = mooring("run", "--kubeconfig", write("lost.kubeconfig", NOWHERE))
    assert answer.code == 1
    assert time.monotonic() - began < 10
    assert "cannot reach the API server 127.0.0.1:1" in answer.err
    assert "lost.kubeconfig" in answer.err
    assert "Traceback" not in answer.err


def test_the_kubeconfig_of_the_configuration_file_is_used(mooring: Mooring):
    write("lost.kubeconfig", NOWHERE)
    config = write("c.yaml", NO_ELECTION + "clientConnection: {kubeconfig: lost.kubeconfig}\n")
    answer = mooring("run", "--config", config)
    assert answer.code == 1
    assert 'from lost.kubeconfig, context "lost"' in answer.err


def test_the_flag_wins_over_the_configuration_file_and_that_over_the_environment(
    mooring: Mooring, monkeypatch: pytest.MonkeyPatch
):
    for name in ("flag", "file", "environment"):
        write(f"{name}.kubeconfig", NOWHERE)
    monkeypatch.setenv("KUBECONFIG", "environment.kubeconfig")
    config = write("c.yaml", NO_ELECTION + "clientConnection: {kubeconfig: file.kubeconfig}\n")
    assert "from flag.kubeconfig" in mooring("run", "--config", config, "--kubeconfig=flag.kubeconfig").err
    assert "from file.kubeconfig" in mooring("run", "--config", config).err
    assert "from environment.kubeconfig" in mooring("run").err


def test_a_kubeconfig_that_does_not_exist_is_a_mistake(mooring: Mooring):
    answer = mooring("run", "--kubeconfig", "missing.kubeconfig")
    assert answer.code == 2
    assert "missing.kubeconfig does not exist" in answer.err


def test_a_kubeconfig_that_is_none_is_a_mistake(mooring: Mooring):
    answer = mooring("run", "--kubeconfig", write("words.kubeconfig", "hello\n"))
    assert answer.code == 2
    assert "words.kubeconfig is not a kubeconfig" in answer.err


def test_without_any_credentials_the_places_looked_at_are_told(mooring: Mooring):
    answer = mooring("run")
    assert answer.code == 2
    for place in ("--kubeconfig", "$KUBECONFIG", "service account", ".kube/config"):
        assert place in answer.err


@pytest.mark.parametrize("flag", ["--leader-elect", "--leader-elect=true"])
def test_leader_election_is_refused_with_a_sentence(mooring: Mooring, flag: str):
    answer = mooring("run", flag)
    assert answer.code == 2
    assert "leader election is not there yet" in answer.err
    assert "set it to false and run one instance" in answer.err


def test_leader_election_in_the_file_is_refused_by_its_field(mooring: Mooring):
    answer = mooring("run", "--config", write("c.yaml", CONFIG + "leaderElection: {leaderElect: true}\n"))
    assert answer.code == 2
    assert "leaderElection.leaderElect" in answer.err


QUIET = {
    "the flag says false": ["--leader-elect=false"],
    "the file says false": ["--config", "no-election.yaml"],
}


@pytest.mark.parametrize("flags", QUIET.values(), ids=QUIET.keys())
def test_without_leader_election_nothing_is_said_about_it(mooring: Mooring, flags: list[str]):
    write("lost.kubeconfig", NOWHERE)
    write("no-election.yaml", NO_ELECTION)
    answer = mooring("run", "--kubeconfig", "lost.kubeconfig", *flags)
    assert answer.code == 1
    assert "leader" not in answer.err


def test_a_defaulted_leader_election_warns(mooring: Mooring):
    write("lost.kubeconfig", NOWHERE)
    answer = mooring("run", "--kubeconfig", "lost.kubeconfig", "--config", write("c.yaml", CONFIG))
    assert answer.code == 1
    assert "leaderElection.leaderElect defaults to true" in answer.err
    assert answer.err.startswith("W")


def test_warnings_are_json_where_the_log_is(mooring: Mooring):
    write("lost.kubeconfig", NOWHERE)
    answer = mooring("run", "--kubeconfig=lost.kubeconfig", "-v=6", "--logging-format=json")
    first = json.loads(answer.err.splitlines()[0])
    assert first["level"] == "warning"
    assert first["msg"].startswith("leaderElection.leaderElect defaults to true")


def test_flags_that_cannot_be_honoured_are_all_refused(mooring: Mooring):
    answer = mooring("run", "--secure-port=10259", "--policy-config-file=x", "--confg", "c.yaml")
    assert answer.code == 2
    assert "the command line has 3 problems" in answer.err
    for flag in ("--secure-port", "--policy-config-file", "--confg"):
        assert f"\n  {flag}\n" in answer.err


def test_a_flag_with_a_wrong_value_is_named(mooring: Mooring):
    for flag in ("--leader-elect=maybe", "--pod-max-in-unschedulable-pods-duration=5x", "--v=high"):
        answer = mooring("run", flag)
        assert answer.code == 2
        assert flag.partition("=")[0] in answer.err


def test_extenders_are_refused_by_their_field(mooring: Mooring):
    config = NO_ELECTION + "extenders: [{urlPrefix: 'http://127.0.0.1:1/', filterVerb: filter}]\n"
    answer = mooring("run", "--config", write("c.yaml", config))
    assert answer.code == 2
    assert "extenders are not there yet" in answer.err


def test_a_configuration_with_mistakes_is_not_run(mooring: Mooring):
    answer = mooring("run", "--config", write("c.yaml", NO_ELECTION + "parallelism: -1\nprofils: []\n"))
    assert answer.code == 2
    assert "c.yaml has 2 problems" in answer.err


def test_a_plugin_file_that_does_not_import_is_not_run(mooring: Mooring):
    answer = mooring("run", "--plugins", write("mine.py", "import no_such_thing\n"))
    assert answer.code == 2
    assert "mine.py:1" in answer.err
