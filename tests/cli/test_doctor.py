"""`mooring doctor` without a cluster: what is wrong with the files is a finding like any other."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Mooring

from mooring.cli.doctor import plan_of
from mooring.framework.gate_table import GATES
from mooring.framework.gates import FeatureGates

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NOWHERE = """
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one}}, {name: two, context: {cluster: two}}]
clusters:
- {name: one, cluster: {server: "https://127.0.0.1:1"}}
- {name: two, cluster: {server: "https://127.0.0.1:2"}}
"""
QUIET = """
from mooring.framework import Cycle, NodeView, Plugin, Pod


class Quiet(Plugin):
    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...
"""


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def test_a_kubeconfig_that_is_not_there(mooring: Mooring):
    result = mooring("doctor", "--kubeconfig", "gone")
    assert result.code == 1
    assert "✗ kubeconfig The kubeconfig gone does not exist." in result.out
    assert "→ Name another with --kubeconfig" in result.out


def test_an_unreachable_server_is_sent_nothing_more(mooring: Mooring):
    result = mooring("doctor", "--kubeconfig", write("kubeconfig", NOWHERE), "--output", "json")
    assert result.code == 1
    found = json.loads(result.out)
    assert found["ok"] is False
    assert [(each["check"], each["verdict"]) for each in found["findings"]] == [("config", "ok"), ("server", "failed")]
    assert "127.0.0.1:1" in found["findings"][1]["message"]
    assert found["findings"][1]["toDo"]


def test_another_context(mooring: Mooring):
    kubeconfig = write("kubeconfig", NOWHERE)
    assert "127.0.0.1:2" in mooring("doctor", "--kubeconfig", kubeconfig, "--context", "two").out
    result = mooring("doctor", "--kubeconfig", kubeconfig, "--context", "three")
    assert 'no context is named "three"; there is "one", "two"' in result.out


def test_a_wrong_configuration_does_not_keep_it_from_looking_at_the_cluster(mooring: Mooring):
    config = write("config.yaml", HEAD + "podInitialBackoffSeconds: -1\n")
    result = mooring("doctor", "--config", config, "--kubeconfig", write("kubeconfig", NOWHERE))
    assert result.code == 1
    assert "✗ config" in result.out
    assert "podInitialBackoffSeconds" in result.out
    assert "✓ config     the default configuration, for what follows: default-scheduler" in result.out
    assert "✗ server" in result.out


def test_a_configuration_that_is_not_where_it_should_be(mooring: Mooring):
    write("scheduler.yml", HEAD)
    result = mooring("doctor", "--config", "scheduler.yaml", "--kubeconfig", write("kubeconfig", NOWHERE))
    assert 'Did you mean "scheduler.yml"?' in result.out


def test_a_group_needs_its_user(mooring: Mooring):
    result = mooring("doctor", "--as-group", "system:masters")
    assert result.code == 2
    assert "--as-group needs --as" in result.err


def test_missing_rules_are_written_by_a_command_that_knows_the_plugins_and_the_gates():
    plugin = write("quiet.py", QUIET)
    config = write("config.yaml", HEAD)
    gates = FeatureGates({"DRAExtendedResource": not GATES["DRAExtendedResource"].default})
    plan = plan_of(config, (plugin,), gates, True, {})
    assert plan.plugins == (plugin,)
    assert plan.remedy.endswith(
        "mooring manifests --config config.yaml --plugins quiet.py "
        f"--feature-gates DRAExtendedResource={str(not GATES['DRAExtendedResource'].default).lower()} --as shadow"
    )
