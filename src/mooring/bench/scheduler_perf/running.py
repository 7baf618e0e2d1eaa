"""Runs workloads: for each of them and each scheduler a fresh control plane, the scheduler, the operations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mooring.base.clock import SystemClock
from mooring.base.errors import Fault
from mooring.bench.control_plane import ControlPlane, free_ports
from mooring.bench.scheduler_commands import SchedulerCommand, gates_flag
from mooring.bench.scheduler_perf.claim_controller import claim_controller
from mooring.bench.scheduler_perf.execution import Execution
from mooring.bench.scheduler_perf.operations import needs_pending_pods
from mooring.bench.scheduler_perf.pod_watch import PodWatch
from mooring.bench.scheduler_perf.results import Run, judge
from mooring.bench.scheduler_perf.schedulers import SchedulerProcess
from mooring.bench.scheduler_perf.workload_files import Case
from mooring.client import ApiClient, Connection

LIMIT_SECONDS = 600.0
CHECK_SECONDS = 1.0
DEVICES = "DynamicResourceAllocation"
_DEVICE_VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")


def server_flags(case: Case) -> list[str]:
    """Of kube-apiserver, as upstream's harness starts it."""
    # Pods of the templates state their priority themselves.
    flags = ["--disable-admission-plugins=Priority"]
    if gates := case.feature_gates:
        flags.append(f"--feature-gates={gates_flag(gates.items())}")
    if gates.get(DEVICES):
        flags.append("--runtime-config=" + ",".join(f"resource.k8s.io/{each}=true" for each in _DEVICE_VERSIONS))
    return flags


async def run_case(
    case: Case,
    command: SchedulerCommand,
    run: Run,
    progress: Callable[[str], None],
    limit_seconds: float = LIMIT_SECONDS,
) -> None:
    """Run the workload once. What is measured goes into the run, as does why it did not end; raises only where it is
    cancelled."""
    try:
        progress("starting etcd and kube-apiserver")
        async with ControlPlane(*server_flags(case)) as control_plane:
            scheduler = SchedulerProcess(command, case, control_plane, free_ports(1)[0])
            watch = PodWatch(is_of_scheduled=not any(map(needs_pending_pods, case.operations())))
            watched = _watched_pods(control_plane.connection, watch)
            async with scheduler, watched as client, AsyncExitStack() as stack:
                if case.feature_gates.get(DEVICES):
                    await stack.enter_async_context(claim_controller(client))
                execution = Execution(case, client, watch, scheduler, run, progress)
                await _run_while_alive(execution.run(), scheduler, limit_seconds)
    except asyncio.CancelledError:
        run.error = "interrupted"
        raise
    except TimeoutError:
        run.error = f"not finished after {limit_seconds:g} s"
    except Fault as error:
        run.error = str(error)
    finally:
        run.verdict = judge(run.items, case.threshold, case.selector)


async def _run_while_alive(work: Coroutine[Any, Any, None], scheduler: SchedulerProcess, seconds: float) -> None:
    """The operations; where the scheduler ends before them, why it ended."""

    async def look() -> None:
        while True:
            scheduler.check()
            await asyncio.sleep(CHECK_SECONDS)

    working, looking = asyncio.create_task(work), asyncio.create_task(look())
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait([working, looking], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, looking):
            if not task.done():
                task.cancel()
        results = await asyncio.gather(working, looking, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


@asynccontextmanager
async def _watched_pods(connection: Connection, pods: PodWatch) -> AsyncIterator[ApiClient]:
    async with ApiClient(connection, user_agent="mooring-bench", clock=SystemClock()) as client:
        reflector = pods.reflector(client.beside("mooring-bench"))
        watching = asyncio.create_task(reflector.run())
        try:
            await reflector.synced.wait()
            yield client
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
