"""Two schedulers on one cluster: one leads, the other stands by and takes over, and no pod is lost or bound twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from tests.cli.clusters import Placed, a_server, create_node, create_pod
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home

from mooring.client import ApiClient
from mooring.objects import Kind

LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
EVENTS = Kind("", "v1", "Event", "events")
QUICK = (
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
)


class Cluster:
    def __init__(self, client: ApiClient, placed: Placed, home: Path) -> None:
        self.client, self.placed, self.home = client, placed, home

    def scheduler(self, *flags: str) -> Program:
        return Program("run", "--kubeconfig=k", *QUICK, *flags, home=self.home)

    async def holder(self) -> str:
        lease = await self.client.get(LEASES, "kube-scheduler", "kube-system")
        holder: str = lease["spec"]["holderIdentity"]
        return holder

    async def elections(self, count: int) -> list[tuple[str, str]]:
        """The notes of events about leading, once there are so many: they are sent in the background."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                events = await self.client.list(EVENTS, "kube-system")
                notes = [
                    (event["reportingComponent"], event["message"])
                    for event in events
                    if event["reason"] == "LeaderElection"
                ]
                if len(notes) == count:
                    return notes
                await asyncio.sleep(0.05)


@asynccontextmanager
async def a_cluster() -> AsyncIterator[Cluster]:
    async with a_server() as (server, client, placed):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            await create_node(client, "only")
            yield Cluster(client, placed, home)


async def test_when_the_leader_is_killed_the_other_takes_over():
    async with a_cluster() as cluster:
        with cluster.scheduler() as one:
            await asyncio.to_thread(one.ready)
            leader = await cluster.holder()
            with cluster.scheduler() as two:
                line = await asyncio.to_thread(two.mentions, "Standing by")
                assert f"{leader} leads" in line
                await create_pod(cluster.client, "first")
                assert await cluster.placed.on("first") == "only"

                one.process.send_signal(signal.SIGKILL)
                await create_pod(cluster.client, "second")
                await asyncio.to_thread(two.ready)
                assert await cluster.placed.on("second") == "only"
                assert await cluster.holder() not in ("", leader)
                for who, note in await cluster.elections(2):
                    assert (who, note.endswith("became leader")) == ("default-scheduler", True)

                assert await asyncio.to_thread(two.end) == 0
                assert await cluster.holder() == ""


async def test_a_leader_that_was_deposed_ends_with_1():
    async with a_cluster() as cluster:
        with cluster.scheduler() as one:
            await asyncio.to_thread(one.ready)
            usurped = {"spec": {"holderIdentity": "usurper", "leaseTransitions": 7}}
            await cluster.client.patch(LEASES, "kube-scheduler", "kube-system", usurped, form="merge")
            await asyncio.to_thread(one.mentions, "Leaderelection lost")
            assert await asyncio.to_thread(one.ended) == 1


async def test_a_lease_of_ones_own_lets_two_schedulers_lead_side_by_side():
    async with a_cluster() as cluster:
        profile = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"resourceName": "second"},
            "profiles": [{"schedulerName": "second"}],
        }
        (cluster.home / "second.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        with cluster.scheduler() as one, cluster.scheduler("--config=second.yaml") as two:
            await asyncio.to_thread(one.ready)
            await asyncio.to_thread(two.ready)
