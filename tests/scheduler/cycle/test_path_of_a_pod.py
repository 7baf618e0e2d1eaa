"""From creation to binding, or to a reason: the whole path on the embedded API server."""

import asyncio

from tests.scheduler.conftest import PATIENCE_SECONDS, a_configuration, a_live_scheduler, a_profile

from mooring.base.clock import ManualClock
from mooring.objects import Node, Pod
from mooring.scheduler.introspection.explain_client import query


async def test_a_pod_is_bound_and_its_event_names_the_node(server):
    """4.4.7, 4.6: a bound pod stays assumed until the watch shows it; messages and conditions are kube-scheduler's."""
    async with a_live_scheduler(server) as live:
        await live.node("node-1")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
        [event] = await live.events("web")
        assert (event["reason"], event["type"], event["action"]) == ("Scheduled", "Normal", "Binding")
        assert event["note"] == "Successfully assigned default/web to node-1"
        assert event["reportingController"] == "default-scheduler"
        assert event["regarding"]["uid"] == live.pods["web"].uid
        assert live.condition("web").status == "True"


async def test_a_pod_that_fits_nowhere_is_reported_in_kube_schedulers_words(server):
    """4.6: messages and conditions are kube-scheduler's."""
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="1")
        await live.node("node-2", cpu="2")
        await live.pod("big", cpu="3")
        assert (await live.refused("big")).startswith("0/2 nodes are available: 2 Insufficient cpu.")
        [event] = await live.events("big")
        assert (event["reason"], event["type"]) == ("FailedScheduling", "Warning")
        assert event["note"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert live.condition("big").reason == "Unschedulable"


async def test_the_socket_serves_attempts_of_queued_pods(server):
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="1")
        await live.pod("big", cpu="3")
        await live.refused("big")
        [response] = await asyncio.to_thread(lambda: query(server.url, {"queue": True}).responses)
        [queued] = response["queuedPods"].values()
        assert (queued["attempts"], queued["place"]) == (1, "unschedulable")
        assert queued["nextAttempt"]


async def test_a_refused_pod_is_tried_again_when_a_node_comes_that_could_take_it(server):
    async with a_live_scheduler(server) as live:
        await live.node("small", cpu="1")
        await live.pod("big", cpu="3")
        await live.refused("big")
        await live.node("large", cpu="8")
        assert await live.bound("big") == ["large"]


async def test_a_refused_pod_is_tried_again_when_another_makes_room(server):
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="1")
        await live.pod("first", cpu="1")
        await live.bound("first")
        await live.pod("second", cpu="1")
        await live.refused("second")
        await live.client.delete(Pod.KIND, "first", "default", grace_seconds=0)
        assert await live.bound("second") == ["node-1"]


async def test_without_nodes_a_pod_waits_and_its_condition_names_why(server):
    """4.3.1: without nodes no plugin rejects the pod."""
    async with a_live_scheduler(server) as live:
        await live.pod("web")
        assert await live.refused("web") == "no nodes available to schedule pods"


async def test_a_pod_for_another_scheduler_is_left_alone(server):
    """4.1.1: pods of other schedulers are ignored."""
    async with a_live_scheduler(server) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="another-scheduler")
        await live.pod("ours")
        await live.bound("ours")
        assert live.pods["theirs"].condition("PodScheduled") is None
        assert await live.events("theirs") == []


async def test_profiles_decide_each_by_its_own_plugins(server):
    config = a_configuration(
        "- schedulerName: default-scheduler",
        a_profile("by-label", plugins=["ScoreByLabel"]).replace("ScoreByLabel}", "ScoreByLabel, weight: 100}"),
        a_profile("only-cpu", plugins=["sample2"]),
    )
    async with a_live_scheduler(server, config) as live:
        await live.node("low", labels={"score-by-label": "1", "cpu": "true"})
        await live.node("high", labels={"score-by-label": "10"})
        await live.pod("a", scheduler="by-label")
        await live.pod("b", scheduler="only-cpu")
        assert await live.bound("a", "b") == ["high", "low"]
        [event] = await live.events("b")
        assert event["reportingController"] == "only-cpu"


async def test_labelling_a_node_wakes_the_pod_that_waits_for_the_label(server):
    config = a_configuration(a_profile("sample-scheduler", plugins=["sample2"]))
    async with a_live_scheduler(server, config) as live:
        await live.node("gpu02")
        await live.node("gpu03")
        await live.pod("test", scheduler="sample-scheduler")
        assert (await live.refused("test")).startswith("0/2 nodes are available: 1 Node: gpu02, 1 Node: gpu03.")
        await live.client.patch(Node.KIND, "gpu02", None, {"metadata": {"labels": {"cpu": "true"}}}, form="merge")
        assert await live.bound("test") == ["gpu02"]


async def test_an_unchanged_condition_is_not_written_again(server):
    """4.6: messages and conditions are kube-scheduler's."""
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="1")
        await live.pod("big", cpu="3")
        await live.refused("big")
        before = live.pods["big"].metadata.resource_version
        live.scheduler.queue.activate([live.pods["big"]])
        await live.pod("small")
        await live.bound("small")
        await live.scheduler.reporter.flush(PATIENCE_SECONDS)
        assert live.pods["big"].metadata.resource_version == before


async def test_repeated_refusals_become_one_series(server):
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="1")
        await live.pod("big", cpu="3")
        await live.refused("big")
        for attempt in range(2, 6):
            live.scheduler.queue.activate([live.pods["big"]])
            await live.pod(f"small-{attempt}")
            await live.bound(f"small-{attempt}")
        events = await live.events("big")
        assert len(events) <= 2
        assert max(event.get("series", {}).get("count", 1) for event in events) >= 2


async def test_a_gated_pod_waits_silently_until_its_gate_is_removed(server):
    """Q11, Q38: a gated pod records its plugin, without an event; an update of an unschedulable pod runs the
    hints.
    """
    async with a_live_scheduler(server) as live:
        await live.node("node-1")
        gated = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "gated"},
            "spec": {"containers": [{"name": "main", "image": "pause"}], "schedulingGates": [{"name": "later"}]},
        }
        await live.client.create(Pod.KIND, gated, "default")
        await live.pod("other")
        await live.bound("other")
        assert live.condition("gated").reason == "SchedulingGated"
        assert await live.events("gated") == []
        [response] = await asyncio.to_thread(lambda: query(server.url, {"explain": "default/gated"}).responses)
        assert response["gating"]["plugin"] == "SchedulingGates"
        await live.client.patch(Pod.KIND, "gated", "default", {"spec": {"schedulingGates": None}}, form="merge")
        assert await live.bound("gated") == ["node-1"]


async def test_priority_decides_who_gets_the_last_place(server):
    clock = ManualClock()  # which of two backoffs ends first is not left to chance: both end at once
    async with a_live_scheduler(server, clock=clock) as live:
        await live.pod("low", cpu="1")
        await live.refused("low")
        important = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "important"},
            "spec": {
                "priorityClassName": "system-cluster-critical",
                "containers": [{"name": "m", "image": "pause", "resources": {"requests": {"cpu": "1"}}}],
            },
        }
        await live.client.create(Pod.KIND, important, "default")
        await live.refused("important")
        await live.node("node-1", cpu="1")
        await live.until(lambda: live.scheduler.state.node("node-1") is not None)
        clock.advance(2)
        assert await live.bound("important") == ["node-1"]
        assert not live.pods["low"].spec.node_name


async def test_many_pods_fill_the_nodes_and_none_beyond_its_room(server):
    async with a_live_scheduler(server) as live:
        for number in range(5):
            await live.node(f"node-{number}", cpu="2")
        names = [f"pod-{number}" for number in range(12)]
        await asyncio.gather(*(live.pod(name, cpu="1") for name in names))
        await live.until(lambda: sum(bool(pod.spec.node_name) for pod in live.pods.values()) == 10)
        waiting = [name for name in names if not live.pods[name].spec.node_name]
        for name in waiting:
            assert (await live.refused(name, containing="5")).startswith("0/5 nodes are available: 5 Insufficient cpu.")
        on_nodes = [pod.spec.node_name for pod in live.pods.values() if pod.spec.node_name]
        assert {node: on_nodes.count(node) for node in on_nodes} == {f"node-{number}": 2 for number in range(5)}


async def test_after_a_restart_nothing_is_lost_and_nothing_is_counted_twice(server):
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="2")
        await live.pod("first", cpu="1")
        await live.bound("first")
        await live.pod("big", cpu="4")
        await live.refused("big")
    async with a_live_scheduler(server) as live:
        await live.pod("second", cpu="1")
        assert await live.bound("second") == ["node-1"]
        await live.pod("third", cpu="1")
        assert (await live.refused("third")).startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await live.node("node-2", cpu="8")
        assert await live.bound("big") == ["node-2"]


async def test_two_profiles_may_configure_the_same_plugin_differently(server):
    def by(name: str, label: str) -> str:
        only = '{score: {enabled: [{name: ScoreByLabel}], disabled: [{name: "*"}]}}'
        args = f"[{{name: ScoreByLabel, args: {{labelKey: {label}}}}}]"
        return f"- schedulerName: {name}\n  plugins: {only}\n  pluginConfig: {args}"

    async with a_live_scheduler(server, a_configuration(by("by-speed", "speed"), by("by-size", "size"))) as live:
        await live.node("fast", labels={"speed": "9", "size": "1"})
        await live.node("large", labels={"speed": "1", "size": "9"})
        await live.pod("a", scheduler="by-speed")
        await live.pod("b", scheduler="by-size")
        assert await live.bound("a", "b") == ["fast", "large"]
