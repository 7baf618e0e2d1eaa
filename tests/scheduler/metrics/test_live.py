"""What a scheduler at work has counted."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.apiserver import EmbeddedApiServer
from mooring.framework import Plugin, Refusal, Wait

PROFILE = "profile=default-scheduler"


def shown(text: bytes) -> dict[str, float]:
    """Series as Prometheus writes them → value."""
    return {
        f"{sample.name}{{{','.join(f'{key}={value}' for key, value in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


async def until_shown(live: Live, series: str) -> dict[str, float]:
    """The binding's last words come after the watch has shown the pod bound."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (seen := shown(live.scheduler.metrics.text())).get(series):  # noqa: ASYNC110  # no event is set for it
            await asyncio.sleep(0)
    return seen


async def test_attempts_are_counted_by_how_they_ended(server: EmbeddedApiServer):
    async with a_live_scheduler(server) as live:
        await live.node("one")
        await live.pod("fits")
        await live.pod("too-big", cpu="64")
        await live.bound("fits")
        await live.refused("too-big")
        placed, refused = (f"{{{PROFILE},result={result}}}" for result in ("scheduled", "unschedulable"))
        seen = await until_shown(live, f"scheduler_schedule_attempts_total{placed}")
        assert seen[f"scheduler_schedule_attempts_total{placed}"] == 1
        assert seen[f"scheduler_schedule_attempts_total{refused}"] >= 1
        assert seen[f"scheduler_scheduling_attempt_duration_seconds_count{placed}"] == 1
        assert seen["scheduler_scheduling_algorithm_duration_seconds_count{}"] >= 2
        assert seen["scheduler_pod_scheduling_attempts_count{}"] == 1
        assert seen["scheduler_pod_scheduling_sli_duration_seconds_count{attempts=1}"] == 1
        assert seen["scheduler_queue_incoming_pods_total{event=UnschedulablePodAdd,queue=active}"] == 2
        assert seen["scheduler_unschedulable_pods{plugin=NodeResourcesFit,profile=default-scheduler}"] == 1
        assert seen["scheduler_cache_size{type=nodes}"] == 1


async def test_extension_points_are_timed(server: EmbeddedApiServer):
    async with a_live_scheduler(server) as live:
        live.scheduler.metrics.attempts.chance = lambda: 0.0  # every attempt is one of the chosen
        for name in ("one", "two"):
            await live.node(name)
        await live.pod("fits")
        await live.bound("fits")
        point = "scheduler_framework_extension_point_duration_seconds_count"
        seen = await until_shown(live, f"{point}{{extension_point=Bind,{PROFILE},status=Success}}")
        for name in ("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit"):
            assert seen[f"{point}{{extension_point={name},{PROFILE},status=Success}}"] == 1, name
        plugin = "scheduler_plugin_execution_duration_seconds_count"
        assert seen[f"{plugin}{{extension_point=Filter,plugin=NodeResourcesFit,status=Success}}"] == 1
        assert seen[f"{plugin}{{extension_point=PreFilter,plugin=NodeAffinity,status=Skip}}"] == 1
        assert seen[f"{plugin}{{extension_point=Bind,plugin=DefaultBinder,status=Success}}"] == 1
        requested = "scheduler_plugin_evaluation_total"
        assert seen[f"{requested}{{extension_point=Score,plugin=NodeResourcesFit,{PROFILE}}}"] == 1
        assert f"{requested}{{extension_point=PreFilter,plugin=NodeAffinity,{PROFILE}}}" not in seen
        assert seen["scheduler_event_handling_duration_seconds_count{event=NodeAdd}"] >= 1
        assert seen["scheduler_event_handling_duration_seconds_count{event=UnschedulablePodAdd}"] == 1
        assert "scheduler_goroutines{operation=binding}" in seen


async def test_the_hint_of_an_event_that_does_not_help_is_counted(server: EmbeddedApiServer):
    async with a_live_scheduler(server) as live:
        await live.node("one")
        await live.pod("too-big", cpu="64")
        await live.refused("too-big")
        await live.node("as-small")
        requested = "scheduler_queueing_hint_execution_duration_seconds_count"
        await until_shown(live, f"{requested}{{event=NodeAdd,hint=QueueSkip,plugin=NodeResourcesFit}}")


class Slowly(Plugin):
    """Lets pods wait, and refuses those whose labels name the point."""

    def reserve(self, pod, node, cycle):
        return Refusal("not here") if "reserve" in pod.labels else None

    def permit(self, pod, node, cycle):
        return Refusal("not now") if "permit" in pod.labels else Wait(0.001)


async def test_refusals_after_the_decision_have_their_status(server: EmbeddedApiServer):
    config = a_configuration(a_profile("default-scheduler", plugins=["Slowly"]))
    async with a_live_scheduler(server, config, [Slowly]) as live:
        await live.node("one")
        await live.pod("refused-early", reserve="yes")
        await live.pod("refused-late", permit="yes")
        await live.pod("waits")
        for name in ("refused-early", "refused-late", "waits"):
            await live.refused(name)
        seen = shown(live.scheduler.metrics.text())
        point = "scheduler_framework_extension_point_duration_seconds_count"
        for name, status in (
            ("Reserve", "Unschedulable"),
            ("Permit", "Unschedulable"),
            ("Permit", "Wait"),
            ("Unreserve", "Success"),
        ):
            assert seen[f"{point}{{extension_point={name},{PROFILE},status={status}}}"] >= 1, name
        assert seen["scheduler_permit_wait_duration_seconds_count{result=Unschedulable}"] >= 1
