"""`mooring run` with input it cannot work with: the message, and the exit code."""

import json
import time

import pytest
from tests.cli.conftest import NOWHERE, Mooring, write

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_ELECTION = CONFIG + "leaderElection: {leaderElect: false}\n"


def test_a_kubeconfig_that_points_nowhere_is_a_fault_that_names_host_and_file(mooring: Mooring):
    began = time.monotonic()
    result = mooring("run", "--kubeconfig", write("lost.kubeconfig", NOWHERE))
    assert result.code == 1
    assert time.monotonic() - began < 60
    assert "cannot reach the API server 127.0.0.1:1" in result.err
    assert "lost.kubeconfig" in result.err
    assert "Traceback" not in result.err


def test_the_kubeconfig_of_the_configuration_file_is_used(mooring: Mooring):
    write("lost.kubeconfig", NOWHERE)
    config = write("c.yaml", NO_ELECTION + "clientConnection: {kubeconfig: lost.kubeconfig}\n")
    result = mooring("run", "--config", config)
    assert result.code == 1
    assert 'from lost.kubeconfig, context "lost"' in result.err


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
    result = mooring("run", "--kubeconfig", "missing.kubeconfig")
    assert result.code == 2
    assert "missing.kubeconfig does not exist" in result.err


def test_a_kubeconfig_that_is_none_is_a_mistake(mooring: Mooring):
    result = mooring("run", "--kubeconfig", write("words.kubeconfig", "hello\n"))
    assert result.code == 2
    assert "words.kubeconfig is not a kubeconfig" in result.err


def test_without_any_credentials_the_places_looked_at_are_listed(mooring: Mooring):
    result = mooring("run")
    assert result.code == 2
    for place in ("--kubeconfig", "$KUBECONFIG", "service account", ".kube/config"):
        assert place in result.err


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--leader-elect-lease-duration=5s", "must be greater than renewDeadline (10s), got 5s"),
        ("--leader-elect-retry-period=0s", "must be greater than zero, got 0s"),
        ("--leader-elect-renew-deadline=2s", "must be greater than 1.2 × retryPeriod (2s), got 2s"),
        ("--leader-elect-resource-lock=endpoints", 'must be "leases", got "endpoints"'),
    ],
)
def test_an_election_that_cannot_work_is_refused_by_its_flag(mooring: Mooring, flag: str, message: str):
    result = mooring("run", flag)
    assert result.code == 2
    assert flag.partition("=")[0] in result.err
    assert message in result.err


QUIET = {
    "the flag is false": ["--leader-elect=false"],
    "the file has false": ["--config", "no-election.yaml"],
}


@pytest.mark.parametrize("flags", QUIET.values(), ids=QUIET.keys())
def test_without_leader_election_nothing_is_logged_about_it(mooring: Mooring, flags: list[str]):
    write("lost.kubeconfig", NOWHERE)
    write("no-election.yaml", NO_ELECTION)
    result = mooring("run", "--kubeconfig", "lost.kubeconfig", *flags)
    assert result.code == 1
    assert "leader" not in result.err


def test_warnings_are_json_where_the_log_is(mooring: Mooring):
    write("lost.kubeconfig", NOWHERE)
    write("old.yaml", NO_ELECTION.replace("/v1\n", "/v1beta2\n"))
    result = mooring("run", "--kubeconfig=lost.kubeconfig", "--config=old.yaml", "-v=6", "--logging-format=json")
    first = json.loads(result.err.splitlines()[0])
    assert first["level"] == "warning"
    assert first["file"] == "old.yaml"


def test_flags_that_cannot_be_honoured_are_all_refused(mooring: Mooring):
    result = mooring("run", "--port=1", "--policy-config-file=x", "--confg", "c.yaml")
    assert result.code == 2
    assert "the command line has 3 problems" in result.err
    for flag in ("--port", "--policy-config-file", "--confg"):
        assert f"\n  {flag}\n" in result.err


def test_a_flag_with_a_wrong_value_is_named(mooring: Mooring):
    for flag in ("--leader-elect=maybe", "--pod-max-in-unschedulable-pods-duration=5x", "--v=high"):
        result = mooring("run", flag)
        assert result.code == 2
        assert flag.partition("=")[0] in result.err


def test_an_extender_whose_certificates_cannot_be_read_is_a_mistake(mooring: Mooring):
    tls = "enableHTTPS: true, tlsConfig: {caFile: lost.pem}"
    config = NO_ELECTION + f"extenders: [{{urlPrefix: 'https://127.0.0.1:1/x', filterVerb: filter, {tls}}}]\n"
    result = mooring("run", "--config", write("c.yaml", config), "--kubeconfig", write("lost.kubeconfig", NOWHERE))
    assert result.code == 2
    assert "extender https://127.0.0.1:1/x, tlsConfig: certificate-authority lost.pem cannot be read" in result.err


def test_a_configuration_with_mistakes_is_not_run(mooring: Mooring):
    result = mooring("run", "--config", write("c.yaml", NO_ELECTION + "parallelism: -1\nprofils: []\n"))
    assert result.code == 2
    assert "c.yaml has 2 problems" in result.err


def test_a_plugin_file_that_does_not_import_is_not_run(mooring: Mooring):
    result = mooring("run", "--plugins", write("mine.py", "import no_such_thing\n"))
    assert result.code == 2
    assert "mine.py:1" in result.err


def test_feature_gates_that_cannot_be_honoured_are_refused_all_at_once(mooring: Mooring):
    result = mooring("run", "--feature-gates=Nope=true,GangScheduling=true", "--feature-gates", "SidecarContainers=0")
    assert result.code == 2
    assert "--feature-gates has 3 problems" in result.err
    assert "locked to true" in result.err


def test_a_gate_that_changes_nothing_is_logged_once(mooring: Mooring):
    result = mooring("run", "--feature-gates=MemoryQoS=true", "--kubeconfig", "missing.kubeconfig")
    assert result.err.count("changes nothing in a scheduler") == 1


@pytest.mark.parametrize(
    ("does", "message"), [("raise ValueError('no disk')", "ValueError: no disk"), ("sys.exit(0)", "0")]
)
def test_a_plugin_whose_constructor_fails_is_named_with_the_line(mooring: Mooring, does: str, message: str):
    plugin = write(
        "pin.py",
        "import sys\nfrom mooring.framework import Plugin\nclass Pin(Plugin):\n"
        f"    def __init__(self): {does}\n    def filter(self, pod, node, cycle): return None\n",
    )
    profile = "profiles: [{plugins: {multiPoint: {enabled: [{name: Pin}]}}}]\n"
    config = write("c.yaml", NO_ELECTION + profile)
    result = mooring("run", "--config", config, "--plugins", plugin, "--kubeconfig", write("lost.kubeconfig", NOWHERE))
    assert result.code == 2
    assert "plugin Pin (pin.py) cannot be built" in result.err
    assert message in result.err
    assert "pin.py:4" in result.err


@pytest.mark.parametrize("command", ["run", "up"])
@pytest.mark.parametrize(
    ("value", "message"), [("-1", "-1 is not in the range x>=0"), ("often", "'often' is not a valid integer range")]
)
def test_how_often_decisions_are_verified_is_a_whole_number(mooring: Mooring, command: str, value: str, message: str):
    result = mooring(command, f"--verify-every={value}")
    assert result.code == 2
    assert "--verify-every" in result.err
    assert message in result.err
