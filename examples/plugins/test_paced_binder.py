from __future__ import annotations

import asyncio

from mooring.framework import Bound, Skip
from mooring.testing import Services, a_cycle, a_node, a_plugin, a_pod

from .labels import PACED
from .paced_binder import PacedBinder


async def test_the_second_pod_on_a_node_waits_for_its_turn():
    services = Services()
    plugin, node = a_plugin(PacedBinder, services, pause_seconds=10), a_node()
    first, second = (a_pod(name, labels={PACED: ""}) for name in ("first", "second"))

    assert await plugin.bind(first, node, a_cycle(first)) == Bound()
    binding = asyncio.create_task(plugin.bind(second, node, a_cycle(second)))
    await asyncio.sleep(0)
    assert services.binder.bound == [("default/first", "node")]

    services.clock.advance(10)
    assert await binding == Bound()
    assert services.binder.bound == [("default/first", "node"), ("default/second", "node")]


async def test_pods_on_different_nodes_do_not_wait_for_each_other():
    services = Services()
    plugin = a_plugin(PacedBinder, services)
    for name in ("a", "b"):
        pod = a_pod(name, labels={PACED: ""})
        assert await plugin.bind(pod, a_node(f"node-{name}"), a_cycle(pod)) == Bound()


async def test_other_pods_are_left_to_the_next_bind_plugin():
    services, pod = Services(), a_pod()
    assert await a_plugin(PacedBinder, services).bind(pod, a_node(), a_cycle(pod)) == Skip()
    assert services.binder.bound == []
