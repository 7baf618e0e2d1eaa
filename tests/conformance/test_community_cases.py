"""Cases of community plugins: queues, single steps, loads, relative times, crashes of the original."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.conformance.builders import a_case, a_configuration, a_node, a_pod, recorded, situation

from mooring.base.clock import timestamp
from mooring.plugins.community.preemption_toleration.plugin import PreemptionToleration
from mooring.plugins.community.trimaran.loads import Loads
from mooring_conformance.cases import community_files, read
from mooring_conformance.comparing import scores
from mooring_conformance.running import Options, run_case

Json = dict[str, Any]


def only(point: str, *plugins: str, args: Json | None = None) -> Json:
    points = {"multiPoint": {"disabled": [{"name": "*"}]}, "bind": {"enabled": [{"name": "DefaultBinder"}]}}
    points["queueSort"] = {"enabled": [{"name": "PrioritySort"}]}
    points[point] = {"enabled": [{"name": name} for name in plugins]}
    config = [{"name": plugins[0], "args": args}] if args else []
    return a_configuration(plugins=points, pluginConfig=config)


def kinds(case: Json, expect: Json, options: Options | None = None) -> list[tuple[str, str]]:
    found = run_case(recorded(case, expect), options or Options())
    return [(each.kind, each.where) for differing in found for each in differing.differences]


def a_queue(*waiting: Json) -> Json:
    since = "2024-01-01T00:00:00Z"
    case = a_case(*waiting, config=only("queueSort", "QOSSort"))
    case["queue"] = [{"pod": f"default/{pod['metadata']['name']}", "timestamp": since} for pod in waiting]
    return case


QUEUE = a_queue(a_pod("low"), a_pod("high", priority=5))


def test_the_order_of_a_queue_is_compared():
    assert kinds(QUEUE, {"less": ["00", "10"], "order": ["default/high", "default/low"]}) == []
    assert kinds(QUEUE, {"less": ["01", "00"], "order": ["default/low", "default/high"]}) == [
        ("less", "default/low"),
        ("less", "default/high"),
        ("order", ""),
    ]


def test_a_queue_in_which_the_original_crashes_agrees_if_ours_does_not():
    assert kinds(QUEUE, {"result": "panic", "message": "nil pointer"}) == []


NUMA = only("filter", "NodeResourceTopologyMatch")


def test_single_steps_are_compared():
    case = a_case(a_node("a"), a_pod("first"), config=NUMA)
    case["steps"] = [{"op": "filter", "plugin": "NodeResourceTopologyMatch", "pod": "default/first", "node": "a"}]
    wrong = {"result": "panic", "steps": [{"code": "Unschedulable", "reasons": ["cannot align pod"]}]}
    assert kinds(case, {"result": "panic", "steps": [{"code": "Success"}]}) == []
    assert kinds(case, wrong) == [("step 0", "filter default/first")]


def test_a_crash_of_the_original_agrees_with_any_decision_also_of_one_plugin():
    case = a_case(a_node("a"), a_node("b"), config=NUMA)
    panic = {"result": "panic", "message": "index out of range"}
    assert kinds(case, panic) == []
    assert kinds(case, panic, Options(plugins=frozenset({"NodeResourceTopologyMatch"}))) == []


def test_relative_times_are_those_of_the_clock():
    case = a_case(a_node("a"), a_pod("runs", node="a"))
    case["objects"][1]["status"]["startTime"] = "now-600s"
    made = situation(case)
    assert made.parts.pods[0].status.start_time == timestamp(made.services.clock.now() - 600)


def test_metrics_are_what_the_load_watcher_reports():
    args = {"watcherAddress": "http://load-watcher.invalid"}
    case = a_case(a_node("a"), config=only("score", "LoadVariationRiskBalancing", args=args))
    node = {"metrics": [{"type": "CPU", "operator": "AVG", "value": 12.5}]}
    case |= {"metrics": {"data": {"NodeMetricsMap": {"a": node}}}, "windowEndOffset": -30}
    made = situation(case)
    loads = made.services.published(Loads).latest
    assert loads is not None
    assert loads.nodes["a"][0].value == 12.5
    assert loads.window_end == made.services.clock.now() - 30


def test_community_plugins_decide_as_the_original():
    case = a_case(a_node("a"), config=only("postFilter", "PreemptionToleration"))
    made = situation(case)
    [plugin] = [plugin for uses in made.points.values() for plugin, _ in uses if plugin.name == "PreemptionToleration"]
    assert isinstance(plugin, PreemptionToleration)
    assert plugin._is_compatible


def peaks(raw: int, normalized: int) -> Json:
    return {"raw": {"Peaks": raw}, "normalized": {"Peaks": normalized}, "scores": {"Peaks": normalized}, "total": 0}


def test_the_noise_of_floating_point_is_no_difference():
    theirs = {"a": peaks(10**9, 50), "b": peaks(0, 100)}
    assert list(scores({"a": peaks(10**9 + 30, 51), "b": peaks(0, 100)}, theirs)) == []
    assert [each.where for each in scores({"a": peaks(10**9 + 65, 50), "b": peaks(0, 100)}, theirs)] == ["a"]
    assert [each.where for each in scores({"a": peaks(10**9, 52), "b": peaks(0, 100)}, theirs)] == ["a"]


def test_where_all_raw_scores_are_noise_normalized_ones_are_too():
    assert list(scores({"a": peaks(3, 0), "b": peaks(0, 100)}, {"a": peaks(0, 0), "b": peaks(0, 0)})) == []


def test_a_family_has_the_plugin_of_its_name():
    for file in community_files():
        case = msgspec.json.decode(read(file)[0])["case"]
        assert case["name"].startswith(file.name.partition(".")[0])
