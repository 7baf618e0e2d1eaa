"""The three plugins that shaped the contract, at work in a live scheduler: gang, quota, load-aware."""

import asyncio
from pathlib import Path

from aiohttp import web
from tests.scheduler.conftest import CRDS, PATIENCE_SECONDS, a_configuration, a_live_scheduler

from mooring.objects import Kind, Pod

CONTRACT = Path(__file__).parents[2] / "plugins" / "contract"

GANG = a_configuration("""
- schedulerName: default-scheduler
  plugins:
    queueSort: {enabled: [{name: Gang}], disabled: [{name: PrioritySort}]}
    multiPoint: {enabled: [{name: Gang}]}
""")


async def test_a_gang_is_bound_together_or_not_at_all(server):
    """Q43: plugins may activate other pods."""
    trio = {"gang": "trio", "gang-size": "3"}
    async with a_live_scheduler(server, GANG, [str(CONTRACT / "gang.py")]) as live:
        await live.node("node-1", cpu="8")
        for name in ("one", "two"):
            await live.pod(name, **trio)
            assert "of 3 pods" in await live.refused(name)
        await live.pod("alone")
        await live.bound("alone")
        assert not any(live.pods[name].spec.node_name for name in ("one", "two"))

        await live.pod("three", **trio)
        assert await live.bound("one", "two", "three") == ["node-1"] * 3


async def test_a_gang_whose_last_member_finds_no_room_gives_its_places_back(server):
    pair = {"gang": "pair", "gang-size": "2"}
    config = GANG + "  pluginConfig: [{name: Gang, args: {waitSeconds: 0.2}}]"
    async with a_live_scheduler(server, config, [str(CONTRACT / "gang.py")]) as live:
        await live.node("node-1", cpu="1")
        await live.pod("one", cpu="1", **pair)
        await live.refused("one")
        await live.pod("two", cpu="1", **pair)
        await live.refused("two")
        await live.refused("one", containing="rejected due to timeout after waiting 200ms at plugin Gang")
        await live.client.delete(Pod.KIND, "one", "default")
        await live.client.delete(Pod.KIND, "two", "default")
        await live.pod("three", cpu="1")
        assert await live.bound("three") == ["node-1"]


QUOTAS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "quotas.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "quotas", "singular": "quota", "kind": "Quota"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"cpu": {"type": "string"}}}},
                    }
                },
            }
        ],
    },
}
QUOTA = Kind("example.com", "v1", "Quota", "quotas", False)


async def test_a_team_waits_for_its_quota_to_grow_or_to_be_freed(server):
    config = a_configuration("""
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: TeamQuota}]}}
""")
    async with a_live_scheduler(server, config, [str(CONTRACT / "quota.py")]) as live:
        await live.client.create(CRDS, QUOTAS)
        quota = {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "red"}, "spec": {"cpu": "1"}}
        await live.client.create(QUOTA, quota)
        await live.node("node-1", cpu="16")
        await live.pod("first", cpu="1", team="red")
        await live.bound("first")
        await live.pod("second", cpu="1", team="red")
        assert "team red has 0m of its 1000m CPU left" in await live.refused("second", containing="team")
        await live.pod("blue", cpu="1", team="blue")
        await live.bound("blue")

        await live.client.patch(QUOTA, "red", None, {"spec": {"cpu": "2"}}, form="merge")
        assert await live.bound("second") == ["node-1"]
        await live.pod("third", cpu="1", team="red")
        await live.refused("third", containing="team")
        await live.client.delete(Pod.KIND, "first", "default", grace_seconds=0)
        assert await live.bound("third") == ["node-1"]


async def test_what_a_background_task_publishes_decides(server):
    requested, requested_twice = [], asyncio.Event()

    async def prometheus(request: web.BaseRequest) -> web.Response:
        requested.append(request.query["query"])
        if len(requested) == 2:
            requested_twice.set()  # so the first response has been published
        used = {"busy": "3.9", "idle": "0.1"}
        result = [{"metric": {"node": node}, "value": [0, cpu]} for node, cpu in used.items()]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    runner = web.ServerRunner(web.Server(prometheus))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        config = a_configuration(f"""
- schedulerName: default-scheduler
  plugins: {{score: {{enabled: [{{name: LoadAware}}], disabled: [{{name: "*"}}]}},
             multiPoint: {{enabled: [{{name: LoadAware}}]}}}}
  pluginConfig:
  - name: LoadAware
    args: {{prometheusAddress: "http://127.0.0.1:{runner.addresses[0][1]}", refreshSeconds: 0.01}}
""")
        async with a_live_scheduler(server, config, [str(CONTRACT / "load_aware.py")]) as live:
            await live.node("busy")
            await live.node("idle")
            await asyncio.wait_for(requested_twice.wait(), PATIENCE_SECONDS)
            await live.pod("web")
            assert await live.bound("web") == ["idle"]
            decision = live.scheduler.decision_log.read("default/web")
            assert decision is not None
            assert decision["used"]["LoadAware"] >= 1
    finally:
        await runner.cleanup()
