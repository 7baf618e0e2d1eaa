"""Whether the lease is released when the process ends while the scheduler's loop does not run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.scheduler.conftest import PATIENCE_SECONDS

from mooring.base.clock import SystemClock
from mooring.client import ApiClient, Connection
from mooring.client.fence import WriteFence
from mooring.config.model import LeaderElection
from mooring.scheduler.election.leader_election import LEASES
from mooring.scheduler.election.leadership import Leadership
from mooring.scheduler.election.side_thread import in_thread

CASES = {
    "nothing is in flight": (None, 1, ""),
    "an event is in flight": (False, 1, ""),
    "a binding may be in flight": (True, 1, "its own"),
    "there is no time left": (None, 0, "its own"),
}


async def in_flight(fence: WriteFence, is_decision: bool) -> AsyncIterator[None]:
    with fence.sending(lambda: None, is_decision=is_decision):
        yield


@pytest.mark.parametrize(("is_decision", "seconds", "holder"), CASES.values(), ids=CASES.keys())
async def test_who_holds_the_lease_afterwards_if(is_decision: bool | None, seconds: float, holder: str, server, capsys):
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    fence = WriteFence()
    leader = Leadership(connection, LeaderElection(), SystemClock(), fence, on_lost=lambda _: None)
    leader.start()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await leader.wait()
    held_up = asyncio.new_event_loop()  # the scheduler's: it does not run
    if is_decision is not None:
        sending = in_flight(fence, is_decision)
        await in_thread(lambda: held_up.run_until_complete(anext(sending)))
    await in_thread(lambda: leader.abandon(seconds * PATIENCE_SECONDS))
    held_up.close()
    assert not fence.is_open
    async with ApiClient(connection) as client:
        lease = await client.get(LEASES, "kube-scheduler", "kube-system")
    assert lease["spec"]["holderIdentity"] == (leader.identity if holder else "")
    assert ("The lease is not released: a write is in flight" in capsys.readouterr().err) is bool(is_decision)
    await in_thread(leader.stop)
