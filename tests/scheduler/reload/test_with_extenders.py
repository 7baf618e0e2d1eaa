"""While extenders are called for a pod, it is being decided: the next version waits for its end."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.scheduler.conftest import PATIENCE_SECONDS, a_live_scheduler
from tests.scheduler.extenders.conftest import an_extender, calling, only
from tests.scheduler.reload.changes import a_registry

from mooring.config import load_configuration


async def test_a_version_takes_over_when_the_extenders_have_responded(server):
    async with an_extender() as extender:
        may_respond = asyncio.Event()

        async def filter_slowly(args: dict[str, Any]) -> Any:
            await may_respond.wait()
            return only("a")(args)

        extender.on["filter"] = filter_slowly
        config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "httpTimeout": "30s"})
        async with a_live_scheduler(server, config) as live:
            await live.node("a")
            await live.pod("early")
            async with asyncio.timeout(PATIENCE_SECONDS):
                await extender.is_requested.wait()
            registry = a_registry()
            text = config + "profiles: [{schedulerName: default-scheduler}, {schedulerName: extra}]\n"
            new = load_configuration(text, source="new.yaml", registry=registry).configuration
            adopting = asyncio.create_task(live.scheduler.adopt(new, registry))
            for _ in range(100):
                await asyncio.sleep(0)
            assert live.scheduler.version == 1
            may_respond.set()
            assert (await adopting).added == ["extra"]
            await live.pod("late", scheduler="extra")
            assert await live.bound("early", "late") == ["a", "a"]
