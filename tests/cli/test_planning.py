"""`mooring fit`, `capacity` and `drain-check` as a user calls them: on files, and on a cluster that runs."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import NOWHERE, Mooring, write

from mooring.apiserver import EmbeddedApiServer

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 1500m}}}]}
"""
CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: mooring.dev/v1alpha1, kind: SimulatedNodes, count: 3, labels: {pool: old}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web, namespace: default, uid: rs}
  spec:
    replicas: 1
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-x
    namespace: default
    uid: p
    labels: {app: web}
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: rs, controller: true}]
  spec:
    nodeName: node-1
    volumes: [{name: scratch, emptyDir: {}}]
    containers: [{name: main, image: nginx, resources: {requests: {cpu: 3}}}]
  status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: web, namespace: default, uid: b, generation: 1}
  spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
  status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
"""


@pytest.fixture(autouse=True)
def files() -> None:
    write("pod.yaml", POD)
    write("cluster.yaml", CLUSTER)
    write("trace.csv", "arrival,duration,cpu\n0,100,4\n0,100,4\n0,100,4\n200,,4\n")


Live = tuple[EmbeddedApiServer, Path]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """An embedded API server in a thread of its own, and its kubeconfig. No controller changes anything."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "cluster.yaml").write_text(CLUSTER)
    from mooring.simulated.loading import fill

    server = EmbeddedApiServer()
    fill(server, str(folder / "cluster.yaml"), now=0.0)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    (folder / "kubeconfig").write_text(server.kubeconfig_text())
    yield server, folder / "kubeconfig"
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_fit_prints_nodes_and_what_limits(mooring: Mooring):
    result = mooring("fit", "pod.yaml", "--cluster=cluster.yaml")
    assert result.code == 0
    assert result.out.startswith("Pods like default/web that fit: 4.\n\nOn 2 of 3 nodes\n")
    assert "3      3            1500m      1 (node-1)        Insufficient cpu" in result.out
    assert "cpu is what 3 of 3 nodes lack." in result.out


COUNTS = {"as many as fit": (4, 0, "Yes: 4 pods"), "one more": (5, 1, "No: 4 of 5 pods")}


@pytest.mark.parametrize(("count", "code", "summary"), COUNTS.values(), ids=COUNTS.keys())
def test_fit_of_a_number_is_an_exit_code(mooring: Mooring, count: int, code: int, summary: str):
    result = mooring("fit", "pod.yaml", "--cluster=cluster.yaml", f"--count={count}")
    assert (result.code, result.out.startswith(summary)) == (code, True)


def test_fit_of_none_is_an_exit_code(mooring: Mooring):
    write("huge.yaml", POD.replace("1500m", "64"))
    result = mooring("fit", "huge.yaml", "--nodes=2")
    assert (result.code, result.out.splitlines()[0]) == (1, "No pod like default/web fits.")


LOADS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: TargetLoadPacking}]}}
  pluginConfig: [{name: TargetLoadPacking, args: {watcherAddress: "http://127.0.0.1:9"}}]
"""


def test_a_plugin_that_fetches_data_does_so_once_from_a_cluster_that_runs(mooring: Mooring, live: Live):
    write("loads.yaml", LOADS)
    found = mooring("fit", "pod.yaml", "--count=1", "--config=loads.yaml", f"--kubeconfig={live[1]}")
    assert found.code == 0
    assert "TargetLoadPacking reads no loads: http://127.0.0.1:9 cannot be reached" in found.err


def test_a_plugin_that_fetches_data_has_none_in_a_file(mooring: Mooring):
    write("loads.yaml", LOADS)
    found = mooring("fit", "pod.yaml", "--count=1", "--config=loads.yaml", "--cluster=cluster.yaml")
    assert found.code == 0
    assert "TargetLoadPacking reads data of another system, which is not known here." in found.err


NO_PROFILE = 'No profile serves schedulerName "mooring" (1 pod): the configuration has default-scheduler. Give the '
OTHERS = CLUSTER.replace("    nodeName: node-1\n", "    nodeName: node-1\n    schedulerName: mooring\n").replace(
    "\n    volumes: [{name: scratch, emptyDir: {}}]", ""
)
MINE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mooring}]
"""


def test_a_drain_of_a_pod_that_no_profile_serves_is_not_known(mooring: Mooring):
    write("others.yaml", OTHERS.replace("disruptionsAllowed: 0", "disruptionsAllowed: 1"))
    result = mooring("drain-check", "node-1", "--cluster=others.yaml")
    assert (result.code, result.out.splitlines()[0]) == (1, "Not known: no profile serves 1 pod of node-1.")
    assert 'default/web-x  node-1  -   no profile serves its schedulerName "mooring"' in result.out
    assert NO_PROFILE in result.err
    assert "--config" in result.err
    write("mine.yaml", MINE)
    assert mooring("drain-check", "node-1", "--cluster=others.yaml", "--config=mine.yaml").code == 0


def test_a_simulation_of_a_pod_that_no_profile_serves_names_the_flag(mooring: Mooring):
    write("mine.yaml", POD.replace("spec: {", "spec: {schedulerName: mooring, "))
    result = mooring("simulate", "--nodes=1", "--workload=mine.yaml")
    assert NO_PROFILE in result.err
    assert 'no profile serves its schedulerName "mooring"' in result.out
    assert "it was not tried" not in result.out


def test_fit_as_json(mooring: Mooring):
    result = mooring("fit", "pod.yaml", "--nodes=2", "-o", "json")
    found = json.loads(result.out)
    assert (found["fits"], found["nodes"]) == (4, {"node-1": 2, "node-2": 2})
    assert found["limits"][0]["mostFree"] == 1000


def test_fit_with_a_plugin(mooring: Mooring):
    plugin = """
from mooring.framework import Plugin, Rejection


class First(Plugin):
    \"\"\"Rejects all nodes but the first.\"\"\"

    def filter(self, pod, node, cycle):
        return None if node.name == "node-1" else Rejection("node(s) are not first")
"""
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: First}]}}}]
"""
    flags = ("--plugins", write("first.py", plugin), "--config", write("config.yaml", config))
    result = mooring("fit", "pod.yaml", "--nodes=3", *flags)
    assert "node-1  2\n" in result.out
    assert '"node(s) are not first" is why 2 of 3 nodes refuse it.' in result.out


def test_capacity_finds_nodes_and_reports_one_fewer(mooring: Mooring):
    write("pods.yaml", POD.replace("1500m", "8"))
    result = mooring("capacity", "pods.yaml", "--nodes=1", "--node=cpu=8,memory=8Gi")
    rows = [line.split("  ")[0] + "|" + line.rsplit("  ", 1)[-1].strip() for line in result.out.splitlines()]
    assert (result.code, "nodes to add|1" in rows, "proven minimal|yes" in rows) == (0, True, True)
    assert "With one fewer, with and without preemption (0 × cpu=8,memory=8Gi): 1 pod not placed." in result.out
    assert "Simulated with 1 × cpu=8,memory=8Gi: 0 pods not placed" in result.err


def test_capacity_of_a_trace_is_its_peak(mooring: Mooring):
    arguments = ("capacity", "trace.csv", "--nodes=1", "--node=like:node-1", "--output=json")
    found = json.loads(mooring(*arguments).out)
    assert found["withoutPreemption"]["trial"]["nodes"] == {"node-1": 2}
    assert json.loads(mooring(*arguments, "--max-wait=1000").out)["withoutPreemption"]["total"] == 0


def test_capacity_with_costs(mooring: Mooring):
    kinds = ("--node=cpu=4,memory=8Gi", "--cost=1", "--node=cpu=8,memory=16Gi", "--cost=1.5")
    result = mooring("capacity", "trace.csv", "--nodes=1", *kinds)
    assert ["cost", "1.5"] in [line.split() for line in result.out.splitlines()]


def test_capacity_for_what_nothing_can_run(mooring: Mooring):
    result = mooring("capacity", "trace.csv", "--nodes=1", "--node=cpu=2,memory=8Gi")
    assert result.code == 1
    assert "No number of these nodes places all 4 pods." in result.out
    assert "default/pod-1  0/1 nodes are available: 1 Insufficient cpu." in result.out


def test_drain_check_objects_as_kubectl_and_budgets_do(mooring: Mooring):
    result = mooring("drain-check", "node-1", "--cluster=cluster.yaml")
    assert result.code == 1
    assert "default/web-x  node-1  Pods with local storage (use --delete-emptydir-data to override)" in result.out
    assert "The disruption budget web needs 1 healthy pods and has 1 currently" in result.out


def test_drain_check_of_selected_nodes(mooring: Mooring):
    write("free.yaml", CLUSTER.replace("disruptionsAllowed: 0", "disruptionsAllowed: 1"))
    arguments = ("drain-check", "--delete-emptydir-data", "--cluster=free.yaml")
    one = mooring(*arguments, "-l", "kubernetes.io/hostname in (node-1)", "--output=json")
    found = json.loads(one.out)
    assert (one.code, found["isPossible"], found["pods"][0]["target"]) == (0, True, "node-3")
    every = mooring(*arguments, "-l", "pool=old")
    assert every.code == 1
    assert "3 node(s) were unschedulable" in every.out
    assert mooring(*arguments, "node/node-2").out == "Yes: node-2 can be drained.\n"


def test_each_works_on_a_cluster_that_runs_and_writes_nothing(live: tuple[EmbeddedApiServer, Path], mooring: Mooring):
    server, kubeconfig = live
    before = server.registry.store.revision
    flag = f"--kubeconfig={kubeconfig}"
    assert mooring("fit", "pod.yaml", flag).out.startswith("Pods like default/web that fit: 4.")
    assert "default/pod-3: it waited 100 s" in mooring("capacity", "trace.csv", flag, "--node=cpu=4,memory=8Gi").out
    drained = mooring("drain-check", "node-1", flag)
    assert drained.code == 1
    assert "Pods with local storage" in drained.out
    assert drained.err.startswith(f"Listing {server.url}")
    assert "pods" in mooring("simulate", "--workload=trace.csv", flag).out
    (kubeconfig.parent / "packing.yaml").write_text(PACKING)
    compared = mooring("compare", "default", str(kubeconfig.parent / "packing.yaml"), flag, "--reschedule")
    assert compared.code == 0, compared.err
    assert "On another node with" in compared.out
    assert server.registry.store.revision == before


PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""

DOCUMENTED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: nginx, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}
"""


@pytest.mark.parametrize("command", ["fit", "capacity"])
def test_the_documented_output_is_printed(mooring: Mooring, command: str):
    page = (Path(__file__).parents[2] / "docs/what-if.md").read_text(encoding="utf-8")
    [(line, output)] = re.findall(rf"^\$ (mooring {command} .*--nodes 3.*)\n((?:.*\n)*?)```", page, re.MULTILINE)
    write("web.yaml", DOCUMENTED)
    write("jobs.yaml", DOCUMENTED)
    assert mooring(*line.split()[1:]).out == output


MISTAKES = {
    "a manifest that is not there": (["fit", "gone.yaml", "--nodes=1"], "gone.yaml cannot be read"),
    "two clusters": (["fit", "pod.yaml", "--nodes=1", "--context=x"], "exclude each other"),
    "no cluster": (["fit", "pod.yaml"], "No cluster to talk to"),
    "no pods": (["fit", "pod.yaml", "--nodes=1", "--count=0"], "--count"),
    "no kind of node": (["capacity", "trace.csv", "--nodes=1"], "--node"),
    "no workload": (["capacity", "--nodes=1", "--node=cpu=1,memory=1Gi"], "Name a WORKLOAD"),
    "too few costs": (
        ["capacity", "trace.csv", "--nodes=1", "--node=like:node-1", "--node=cpu=1,memory=1Gi", "--cost=1"],
        "give one cost for each",
    ),
    "no node to drain": (["drain-check", "--nodes=1"], "Name a node"),
    "an unknown node": (["drain-check", "node-9", "--nodes=1"], "no such node"),
    "a selector that matches nothing": (["drain-check", "-l", "a=b", "--nodes=1"], "matches no node"),
    "a selector that is none": (["drain-check", "-l", "a in b", "--nodes=1"], "cannot be parsed"),
}


@pytest.mark.parametrize(("arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_explained(mooring: Mooring, arguments: list[str], message: str):
    result = mooring(*arguments)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""


def test_an_unreachable_cluster_is_a_fault(mooring: Mooring):
    result = mooring("fit", "pod.yaml", "--kubeconfig", write("kubeconfig", NOWHERE))
    assert (result.code, result.out) == (1, "")
    assert "127.0.0.1:1" in result.err


@pytest.mark.parametrize("command", [("simulate", "--workload"), ("capacity", "--node=cpu=4,memory=8Gi")])
def test_columns_of_a_trace_that_are_not_read_are_named(mooring: Mooring, command: tuple[str, ...]):
    write("typed.csv", "arrival,cpu,memroy\n0,1,100Gi\n")
    result = mooring(*command, "typed.csv", "--nodes=1")
    assert result.code == 0
    assert 'typed.csv: column "memroy" is not read. Did you mean "memory"?' in result.err
