"""The drain test: all pods are pending before the scheduler starts; the rate is from the first binding to the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from mooring.base.errors import Fault
from mooring.bench.e2e.binding_watch import BindingWatch
from mooring.bench.e2e.cluster import BenchCluster
from mooring.bench.e2e.contenders import Contender
from mooring.bench.e2e.events import follow_events
from mooring.bench.e2e.measurement import Run, gangs_bound_at, latency_of, rate
from mooring.bench.e2e.observing import observe
from mooring.bench.e2e.running_contender import running
from mooring.bench.e2e.scenario import Task
from mooring.bench.manifests import Document, incoming_manifest
from mooring.bench.processes import Usage, usage_of


class Drain:
    """Create the pods, start the contender, and observe until all are bound."""

    name = "drain"

    async def run(self, cluster: BenchCluster, contender: Contender, task: Task, number: int) -> Run:
        workload = task.workload
        manifests = [incoming_manifest(workload, each) for each in range(task.pods)]
        names = [each["metadata"]["name"] for each in manifests]
        nodes = [workload.node(each).name for each in range(task.nodes)]
        async with BindingWatch(cluster.client, names) as watch:
            await cluster.create_groups(workload, task.pods)
            await cluster.create_pods(manifests)
            if watch.first.is_set():
                raise Fault("another scheduler binds the pods of this cluster: stop it, then measure.")
            server_before = _server_usage(cluster)
            async with running(contender, cluster, names, nodes) as process:
                observed = await observe(process, watch)
                server_cpu = _server_usage(cluster).cpu_seconds - server_before.cpu_seconds
                events = None if contender.is_bare else await follow_events(cluster, len(watch.bound_at))
                usage = process.usage()
                trouble = observed.trouble and f"{observed.trouble}\n{process.last_lines()}"
        times = sorted(watch.bound_at.values())
        bound = len(times)
        per_node = Counter(watch.nodes.values())
        return Run(
            scenario=self.name,
            workload=task.name,
            contender=contender.name,
            round=number,
            nodes=task.nodes,
            running=task.running,
            pods=task.pods,
            bound=bound,
            pods_per_second=rate(times),
            gangs_per_second=rate(gangs_bound_at(_gangs(manifests), watch.bound_at)),
            first_binding_seconds=times[0] - process.started_at if times else None,
            cpu_ms_per_pod=usage.cpu_seconds * 1000 / bound if bound else None,
            start_cpu_seconds=observed.start_cpu_seconds,
            peak_mib=usage.peak_mib,
            server_cpu_ms_per_pod=server_cpu * 1000 / bound if bound and cluster.server_pid is not None else None,
            events=events.scheduled if events is not None else None,
            event_lag_seconds=max(0.0, events.last_at - times[-1]) if events is not None and times else None,
            latency=latency_of([each - process.started_at for each in times]),
            nodes_used=len(per_node),
            most_pods_on_a_node=max(per_node.values(), default=0),
            trouble=trouble,
        )


def _gangs(manifests: Iterable[Document]) -> Iterator[list[str]]:
    """The names of the pods of each."""
    gangs: dict[str, list[str]] = {}
    for each in manifests:
        if (group := each["spec"].get("schedulingGroup")) is not None:
            gangs.setdefault(group["podGroupName"], []).append(each["metadata"]["name"])
    yield from gangs.values()


def _server_usage(cluster: BenchCluster) -> Usage:
    return usage_of(cluster.server_pid) if cluster.server_pid is not None else Usage()
