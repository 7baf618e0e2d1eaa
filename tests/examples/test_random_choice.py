"""RandomChoice in a live scheduler: who was drawn no node is tried again, and all are bound in the end."""

from __future__ import annotations

from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile

PODS = [f"pod-{number}" for number in range(12)]


async def test_every_pod_is_bound_by_and_by(server):
    arguments = "[{name: RandomChoice, args: {seed: 3, retrySeconds: 0.02}}]"
    profile = a_profile("random", plugins=["RandomChoice"], args=arguments)
    async with a_live_scheduler(server, a_configuration(profile)) as live:
        await live.node("node-1")
        for name in PODS:
            await live.pod(name, scheduler="random")
        assert await live.bound(*PODS) == ["node-1"] * len(PODS)
        waited = [event for name in PODS for event in await live.events(name) if event["reason"] == "FailedScheduling"]
    # Twelve coins that all fall on the same side at once: one run in four thousand.
    assert waited
    assert all(event["note"].startswith("0/1 nodes are available: 1 node(s) were not drawn.") for event in waited)
