"""What-ifs: pods, nodes, weights and configurations tried out, with the cluster as it was afterwards."""

from __future__ import annotations

import io
import json

import pytest
from tests.web.pages import GPU, mirrored, served

from mooring.simulator import simulate
from mooring.testing import a_node_object, a_pod
from mooring.web import what_if

NEW_POD = """
apiVersion: v1
kind: Pod
metadata: {name: extra, namespace: default}
spec:
  containers: [{name: main, image: app, resources: {requests: {cpu: 500m}}}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: app, resources: {requests: {cpu: "1"}}}]
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: report}
spec:
  parallelism: 1
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: app}]}}
"""
STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: app}]}}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
"""
GENERATED = "apiVersion: mooring.dev/v1alpha1\nkind: GeneratedWorkload\npods: 1\n"
SIMULATED_NODES = "apiVersion: mooring.dev/v1alpha1\nkind: SimulatedNodes\ncount: 100000\n"
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
UNKNOWN_PLUGIN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {score: {enabled: [{name: NodeResourceFit}]}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: large}
status: {allocatable: {cpu: "128", memory: 256Gi, pods: "110"}}
"""
NODES = [a_node_object("idle", cpu="4"), a_node_object("busy", cpu="4"), a_node_object("gpu", cpu="4", taints=[GPU])]
PODS = [
    a_pod("old", cpu="2", memory="1Gi", node="busy", owner="deployment"),
    a_pod("small", cpu="100m", memory="64Mi", node="idle"),
    a_pod("big", cpu="100"),
]


@pytest.fixture
def mirror():
    with mirrored(NODES, PODS) as mirror:
        yield mirror


async def test_a_new_pod_is_placed_with_its_score_and_runner_up(page):
    found = await page.post("what-if", {"pods": NEW_POD})
    placement = next(each for each in found["placements"] if each["pod"] == "default/extra")
    assert (placement["node"], placement["runnerUp"]) == ("idle", "busy")
    assert placement["margin"] > 0
    scores = found["scores"]["default/extra"]
    assert scores["nodes"][0]["name"] == "idle"
    assert found["pending"] == {"before": 1, "after": 1}


async def test_nothing_is_created_by_a_what_if(page):
    before = await page.get("nodes")
    await page.post("what-if", {"pods": DEPLOYMENT, "drain": ["busy"], "addNodes": [{"like": "idle", "count": 2}]})
    await page.post("what-if", {"pod": "default/old", "cordon": ["idle"], "weights": {"NodeResourcesFit": 7}})
    after = await page.get("nodes")
    assert {**after, "revision": 0} == {**before, "revision": 0}
    assert (await page.get("cluster"))["counts"] == {"nodes": 3, "pods": 3, "pending": 1, "bound": 2}


async def test_replicas_and_counts_are_placed_one_after_the_other(page):
    found = await page.post("what-if", {"pods": DEPLOYMENT})
    assert sum(1 for each in found["placements"] if each["pod"].startswith("default/web-") and each["node"]) == 3
    found = await page.post("what-if", {"pods": NEW_POD, "counts": {"extra": 4}})
    assert [each["pod"] for each in found["placements"] if "extra" in each["pod"]] == [
        f"default/extra-{number}" for number in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("pod", ["old", "small", "big"])
async def test_the_manifest_of_a_pod_can_be_edited_and_tried(page, pod):
    manifest = (await page.get(f"pods/default/{pod}"))["manifest"]
    assert manifest["metadata"]["name"] == f"{pod}-edited"
    manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    found = await page.post("what-if", {"pods": json.dumps(manifest)})
    placement = next(each for each in found["placements"] if each["pod"] == f"default/{pod}-edited")
    assert placement["node"] == "idle"


async def test_a_pod_on_a_cordoned_node_is_decided_elsewhere(page):
    found = await page.post("what-if", {"pod": "default/small", "cordon": ["idle"]})
    assert found["placements"][0]["node"] == "busy"
    assert found["moved"] == [{"pod": "default/small", "from": "idle", "to": "busy"}]


async def test_a_weight_changes_the_scores_at_once(page):
    plain = await page.post("what-if", {"pod": "default/small"})
    heavy = await page.post("what-if", {"pod": "default/small", "weights": {"NodeResourcesFit": 10}})
    none = await page.post("what-if", {"pod": "default/small", "weights": {"NodeResourcesFit": 0}})

    def weights(found):
        return {each["name"]: each["weight"] for each in found["scores"]["default/small"]["plugins"]}

    assert weights(heavy) == {**weights(plain), "NodeResourcesFit": 10}
    assert weights(none) == {name: weight for name, weight in weights(plain).items() if name != "NodeResourcesFit"}
    assert heavy["placements"][0]["score"] > plain["placements"][0]["score"]


async def test_pods_of_a_drained_node_move(page):
    found = await page.post("what-if", {"drain": ["busy"]})
    assert found["moved"] == [{"pod": "default/old", "from": "busy", "to": "idle"}]


async def test_added_nodes_take_pending_pods(page):
    found = await page.post("what-if", {"addNodes": [{"template": NODE, "count": 2}]})
    assert len(found["nodes"]) == 2
    assert found["pending"] == {"before": 1, "after": 0}
    assert next(each for each in found["placements"] if each["pod"] == "default/big")["node"] in found["nodes"]


async def test_a_configuration_that_moves_a_pod_names_the_plugin(page):
    found = await page.post("what-if", {"pods": NEW_POD, "config": PACKING})
    [moved] = [each for each in found["moved"] if each["pod"] == "default/extra"]
    assert (moved["from"], moved["to"], moved["plugin"]) == ("idle", "busy", "NodeResourcesFit")


async def test_two_configurations_are_compared_on_the_same_cluster(page):
    found = await page.post("what-if", {"pods": NEW_POD, "compare": {"config": PACKING}})
    [ours] = [each["node"] for each in found["placements"] if each["pod"] == "default/extra"]
    [theirs] = [each["node"] for each in found["compare"]["placements"] if each["pod"] == "default/extra"]
    assert (ours, theirs) == ("idle", "busy")
    assert found["compare"]["moved"][0]["plugin"] == "NodeResourcesFit"


async def test_a_pod_of_high_priority_preempts():
    pods = [a_pod("victim", cpu="3500m", node="idle", priority=0), a_pod("other", cpu="3500m", node="busy", priority=9)]
    urgent = NEW_POD.replace("spec:\n", "spec:\n  priorityClassName: system-cluster-critical\n").replace("500m", "3")
    with mirrored(NODES[:2], pods) as mirror:
        async with served(mirror) as page:
            found = await page.post("what-if", {"pods": urgent.replace("namespace: default", "namespace: kube-system")})
    [placement] = [each for each in found["placements"] if each["pod"] == "kube-system/extra"]
    assert (placement["node"], placement["preempts"]) == ("idle", ["default/victim"])


async def test_an_extender_of_the_request_is_not_called(mirror):
    configuration = PACKING + "extenders: [{urlPrefix: 'http://127.0.0.1:1/', filterVerb: filter}]\n"
    async with served(mirror) as page:
        found = await page.post("what-if", {"pods": NEW_POD, "config": configuration})
    assert [each["node"] for each in found["placements"] if each["pod"] == "default/extra"] == ["busy"]


MISTAKES = {
    "no JSON": ("{", 400, None),
    "an unknown field": ({"nodes": []}, 400, None),
    "a value of a wrong type": ({"cordon": "idle"}, 400, "cordon"),
    "an unknown node to cordon": ({"cordon": ["idel"]}, 400, "cordon"),
    "an unknown node to copy": ({"addNodes": [{"like": "idel"}]}, 400, "addNodes"),
    "neither a node nor a template": ({"addNodes": [{"count": 2}]}, 400, "addNodes[0]"),
    "a path as a template": ({"addNodes": [{"template": "/etc/passwd"}]}, 400, "addNodes[0]"),
    "a count below one": ({"addNodes": [{"like": "idle", "count": 0}]}, 400, "addNodes[0].count"),
    "too many nodes": ({"addNodes": [{"like": "idle", "count": 100_000}]}, 413, "addNodes"),
    "too many pods": ({"pods": DEPLOYMENT.replace("replicas: 3", "replicas: 100000")}, 413, "pods"),
    "too many pods of a Job": ({"pods": JOB.replace("parallelism: 1", "parallelism: 100000")}, 413, "pods"),
    "too many claims of a StatefulSet": ({"pods": STATEFUL_SET.replace("replicas: 1", "replicas: 1001")}, 413, "pods"),
    "too many generated pods": ({"pods": GENERATED.replace("pods: 1", "pods: 100000")}, 400, "pods"),
    "too long a time of generated pods": ({"pods": GENERATED.replace("pods: 1", "duration: 100h")}, 400, "pods"),
    "nodes as pods": ({"pods": SIMULATED_NODES}, 400, "pods"),
    "counts that are too high together": (
        {"pods": DEPLOYMENT, "counts": {"web-0": 1000, "web-1": 1000, "web-2": 1000}},
        413,
        "pods",
    ),
    "a count of pods that is too high": ({"pods": NEW_POD, "counts": {"extra": 10**9}}, 413, "counts.extra"),
    "a pod that the API server would refuse": ({"pods": NEW_POD.replace("500m", "-1")}, 400, "pods"),
    "no YAML": ({"pods": "{{"}, 400, "pods"),
    "a name that is taken": ({"pods": NEW_POD.replace("extra", "old")}, 400, "pods"),
    "an unknown plugin's weight": ({"pod": "default/old", "weights": {"NodeResourceFit": 2}}, 400, None),
    "a weight that is no number": ({"pod": "default/old", "weights": {"NodeResourcesFit": "2"}}, 400, None),
    "a pod that does not exist": ({"pod": "default/nothing"}, 404, "pod"),
    "a configuration with an unknown plugin": ({"config": UNKNOWN_PLUGIN}, 400, None),
    "too long a configuration": ({"config": "#" * 600_000}, 413, "config"),
    "too long a text": ("#" * 1_060_000, 413, None),
}


@pytest.mark.parametrize(("document", "status", "field"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_mistake_names_its_field(page, document, status, field):
    options = {"data": io.BytesIO(document.encode())} if isinstance(document, str) else {"json": document}
    async with page.raw("api/v1/what-if", "POST", headers=page.headers, **options) as response:
        assert response.status == status, await response.text()
        error = (await response.json())["error"]
    assert error["message"]
    if field is not None:
        assert error["field"] == field


async def test_problems_are_listed_once_each_with_the_line_of_its_field(page):
    wrong = NEW_POD.replace("containers:", "containrs:")
    error = (await page.post("what-if", {"pods": wrong}, 400))["error"]
    assert error["message"] == "pods has 2 problems."
    assert [(each["line"], each["message"]) for each in error["problems"]] == [
        (5, 'Pod "extra" is invalid: spec.containers: Required value'),
        (6, 'unknown field "spec.containrs"'),
    ]
    misspelt = NEW_POD.replace("image:", "imag:").replace("resources:", "image: app, resources:")
    error = (await page.post("what-if", {"pods": misspelt}, 400))["error"]
    assert error["message"] == (
        'pods has 1 problem. Pod "default/extra" (line 6): unknown field "spec.containers[0].imag"'
    )


async def test_a_configuration_is_named_as_on_the_page(page):
    error = (await page.post("what-if", {"compare": {"config": UNKNOWN_PLUGIN}}, 400))["error"]
    assert error["message"].startswith("configuration B has 1 problem. profiles[0]")
    assert error["field"] == "compare.config"
    error = (await page.post("what-if", {"config": UNKNOWN_PLUGIN}, 400))["error"]
    assert error["message"].startswith("the configuration has 1 problem. profiles[0]")
    assert error["field"] == "config"


async def test_a_simulation_that_takes_too_long_is_partial(page, monkeypatch):
    def in_no_time(*arguments, time_limit, **options):
        return simulate(*arguments, time_limit=0.0, **options)

    monkeypatch.setattr(what_if, "simulate", in_no_time)
    found = await page.post("what-if", {"pods": DEPLOYMENT})
    assert found["isPartial"]


async def test_what_ifs_that_wait_are_bounded(page, monkeypatch):
    monkeypatch.setattr(page.api.what_ifs, "_count", 5)
    await page.post("what-if", {"pods": NEW_POD}, 429)


async def test_a_gated_pod_is_listed_with_its_gates() -> None:
    with mirrored(NODES, [a_pod("held", cpu="1", gates=["example.com/approval"])]) as mirror:
        async with served(mirror) as page:
            found = await page.post("what-if", {"pods": NEW_POD})
    placements = {each["pod"]: each for each in found["placements"]}
    assert placements["default/held"]["message"] == "waiting for scheduling gates: [example.com/approval]"
