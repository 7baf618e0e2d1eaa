"""What is counted of devices that must be made ready first."""

from __future__ import annotations

import pytest
from tests.plugins.default.dynamic_resources.test_binding_conditions import a_world, pass_time, report, started

from mooring.base.errors import Fault
from mooring.plugins.default.dynamic_resources.binding_conditions import POLL_SECONDS

ENDS = {
    "ready in the end": ("Attached", "success"),
    "broken": ("Broken", "failure"),
    "never reported": (None, "timeout"),
}


@pytest.mark.parametrize(("condition", "status"), ENDS.values(), ids=ENDS.keys())
async def test_how_waiting_for_a_device_ended(condition, status):
    world = a_world()
    _, task = await started(world)
    if condition is not None:
        report(world, condition)
    for _ in range(200):
        if task.done():
            break
        await pass_time(world, POLL_SECONDS)
    try:
        await task
    except Fault:
        assert status != "success"
    labels = {"profile": "default-scheduler", "driver": "gpu.example.com", "status": status}
    metrics = world.services.metrics
    assert metrics.value("scheduler_dra_bindingconditions_allocations_total", **labels) == 1
    assert metrics.value("scheduler_dra_bindingconditions_wait_duration_seconds", **labels) == 1
