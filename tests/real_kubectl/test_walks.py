"""The walks of ScoreByLabel and of the sample filter in detail, on their own manifests and configurations.

Each scheduler runs as its Deployment would run it: with the Deployment's own command, on the ConfigMap that the cluster
holds. Its containers are simulated, so the test starts the command itself.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.programs import SLOW, Program
from tests.real_kubectl.conftest import Kubectl, Up, mooring_up

EXAMPLES = Path(__file__).parents[2] / "examples"
SCORE_BY_LABEL, SAMPLE = EXAMPLES / "score-by-label", EXAMPLES / "sample-filter"
FAILED = "Unable to schedule pod; no fit; waiting"


@contextmanager
def deployed(manifest: Path, kubectl: Kubectl) -> Iterator[Program]:
    """Apply the manifest to its namespace, and run its Deployment's container as a process here."""
    # Without a namespace of its own: the objects are in several.
    apply = [word for word in kubectl.command("apply", "-f", str(manifest)) if not word.startswith("--namespace=")]
    subprocess.run(apply, env=kubectl.environment(), check=True, capture_output=True)
    deployment = kubectl.out("get", "deployments", "-o", "jsonpath={.items[*].metadata.name}")
    kubectl.run("rollout", "status", f"deployment/{deployment}", "--timeout=60s")
    spec = kubectl.json("get", "deployment", deployment)["spec"]["template"]["spec"]
    (container,), (volume,) = spec["containers"], [each for each in spec["volumes"] if "configMap" in each]
    home = kubectl.kubeconfig.parent
    for name, text in kubectl.json("get", "configmap", volume["configMap"]["name"])["data"].items():
        (home / name).write_text(text, encoding="utf-8")
    program, *arguments = container["command"] + container.get("args", [])
    assert program == "mooring"
    folder = container["volumeMounts"][0]["mountPath"]
    here = [argument.replace(folder, str(home)) for argument in arguments if "--secure-port" not in argument]
    with Program(*here, f"--kubeconfig={kubectl.kubeconfig}", "--secure-port=0", home=home) as running:
        running.ready()
        yield running
        assert running.end() == 0, running.written()


@pytest.fixture
def three_nodes() -> Iterator[Up]:
    with mooring_up("--nodes=3") as running:
        yield running


@pytest.fixture
def two_nodes() -> Iterator[Up]:
    with mooring_up(f"--cluster={SAMPLE / 'cluster.yaml'}") as running:
        yield running


def test_score_by_label_favours_the_higher_number(three_nodes: Up):
    kubectl = three_nodes
    with deployed(SCORE_BY_LABEL / "install.yaml", kubectl.in_namespace("scorebylabel")) as scheduler:
        for node, number in (("node-1", 1), ("node-2", 10), ("node-3", 5)):
            kubectl.run("label", "node", node, f"score-by-label={number}")
        kubectl.run("create", "-f", str(SCORE_BY_LABEL / "testpod.yaml"))
        kubectl.run("wait", "--for=condition=Ready", "pod/testpod", "--timeout=60s")
        assert kubectl.rows("get", "pod", "testpod", "-o", "wide")[0]["NODE"] == "node-2"
        kubectl.events("testpod", "Scheduled")
        (scheduled,) = [row for row in kubectl.rows("get", "events") if row["REASON"] == "Scheduled"]
        assert scheduled["MESSAGE"] == "Successfully assigned default/testpod to node-2"
        for line in (
            "[ScoreByLabelArgs] args received. LabelKey: score-by-label",
            '"Attempting to schedule pod" pod="default/testpod"',
            "[ScoreByLabel] Label score for node node-2 is score-by-label = 10",
            "[ScoreByLabel] Nodes final score: [{node-1 10} {node-2 100} {node-3 50}]",
        ):
            scheduler.mentions(line)

        explained = kubectl.explain("testpod")
        assert explained.startswith("Pod default/testpod runs on node-2 (profile scorebylabel, Running).")
        (scores,) = [line.split() for line in explained.splitlines() if line.split()[:1] == ["ScoreByLabel"]]
        assert scores == ["ScoreByLabel", "10", "100", "1", "100"]


class Waiting:
    """The pod of the test Deployment, and the attempts to place it that have failed."""

    def __init__(self, kubectl: Up, scheduler: Program) -> None:
        self._kubectl, self._scheduler = kubectl, scheduler
        self._failed = 0
        kubectl.run("apply", "-f", str(SAMPLE / "test-scheduler.yaml"))
        kubectl.run("wait", "--for=create", "pod", "-l", "app=test-scheduler", "--timeout=60s")
        self.name = kubectl.out("get", "pods", "-o", "jsonpath={.items[0].metadata.name}")

    def fails_again(self) -> None:
        """Wait for one more failure than there were."""
        self._failed += 1
        self._scheduler.until_line(lambda _: self._failures() >= self._failed, what=f"failure number {self._failed}")
        self._failed = self._failures()

    def events(self) -> str:
        return self._kubectl.out("describe", "pod", self.name).partition("Events:")[2]

    def _failures(self) -> int:
        return sum(FAILED in line for line in self._scheduler.err)


def test_the_sample_filter_waits_for_the_label(two_nodes: Up):
    kubectl = two_nodes
    with deployed(SAMPLE / "sample-scheduler.yaml", kubectl.in_namespace("kube-system")) as scheduler:
        pod = Waiting(kubectl, scheduler)
        kubectl.run("wait", "--for=condition=PodScheduled=False", f"pod/{pod.name}", "--timeout=60s")
        pod.fails_again()
        kubectl.events(pod.name, "FailedScheduling")
        assert pod.events().count("0/2 nodes are available: 1 Node: gpu02, 1 Node: gpu03.") == 1
        explained = kubectl.explain(pod.name)
        assert "sample2: Node: gpu02\n      1 node: gpu02" in explained
        assert "registered by sample2" in explained

        kubectl.run("label", "node", "gpu02", "cpu=true")
        kubectl.run("wait", "--for=condition=Ready", f"pod/{pod.name}", "--timeout=60s")
        reasons = ("Scheduled", "Pulling", "Pulled", "Created", "Started")
        kubectl.events(pod.name, *reasons)
        shown = pod.events()
        assert f"Successfully assigned default/{pod.name} to gpu02" in shown
        assert [reason for reason in reasons if f"  {reason} " not in shown] == []
        scheduler.mentions("evaluatedNodes=2 feasibleNodes=1")
        assert kubectl.explain(pod.name).startswith(f"Pod default/{pod.name} runs on gpu02")


def test_refusals_in_a_row_become_one_event_that_counts(two_nodes: Up):
    kubectl = two_nodes
    kubectl.run("cordon", "gpu03")
    with deployed(SAMPLE / "sample-scheduler.yaml", kubectl.in_namespace("kube-system")) as scheduler:
        pod = Waiting(kubectl, scheduler)
        pod.fails_again()
        for _ in range(5):
            kubectl.run("label", "node", "gpu03", "cpu=true")
            pod.fails_again()
            kubectl.run("label", "node", "gpu03", "cpu-")
        # Six refusals: the first also changed the pod's condition, the next begins the series, the third makes it one.
        shown = kubectl.shows("(x2 over ", "describe", "pod", pod.name)
        assert shown.partition("Events:")[2].count("FailedScheduling") == 2
        kubectl.run("label", "node", "gpu02", "cpu=true")
        kubectl.run("wait", "--for=condition=Ready", f"pod/{pod.name}", "--timeout=60s")
    # A scheduler that ends writes what it has counted.
    assert "(x5 over " in pod.events()


def test_two_feasible_nodes_spring_the_trap_of_that_configuration(two_nodes: Up):
    kubectl = two_nodes
    kubectl.run("label", "node", "gpu02", "gpu03", "cpu=true")
    error = (
        'running Score plugins: plugin "TaintToleration" failed with: reading "PreScoreTaintToleration" from cycleState'
    )
    with deployed(SAMPLE / "sample-scheduler.yaml", kubectl.in_namespace("kube-system")) as scheduler:
        scheduler.mentions(
            "preScore is off for TaintToleration, InterPodAffinity, PodTopologySpread, whose score needs it"
        )
        pod = Waiting(kubectl, scheduler)
        kubectl.run("wait", "--for=condition=PodScheduled=False", f"pod/{pod.name}", "--timeout=60s")
        scheduler.mentions('"[sample2] Feasible nodes"')
        (condition,) = kubectl.json("get", "pod", pod.name)["status"]["conditions"]
        assert condition["reason"] == "SchedulerError"
        assert condition["message"].startswith(error)

    config = f"--config={SAMPLE / 'scheduler-config-v1.yaml'}"
    home = kubectl.kubeconfig.parent
    with Program("run", config, f"--kubeconfig={kubectl.kubeconfig}", home=home) as without_the_trap:
        without_the_trap.ready()
        kubectl.run("wait", "--for=condition=Ready", f"pod/{pod.name}", "--timeout=60s")
        assert without_the_trap.end() == 0
        warnings = [line for line in without_the_trap.err if line.startswith("W")]
        assert [line for line in warnings if not any(words in line for words in SLOW)] == []
