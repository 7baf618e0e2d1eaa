"""What a leader may write, and whether it releases its lease, when it could not renew in time."""

from __future__ import annotations

import asyncio

import pytest
from tests.scheduler.election.candidates import FarLeases, a_cluster

from mooring.base.errors import Unreachable
from mooring.config.model import LeaderElection
from mooring.scheduler.election.leader_election import LeaseLost

AWAY = Unreachable("connection refused")


async def test_a_leader_that_was_stopped_may_write_nothing_before_it_has_renewed_its_lease():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        assert one.fence.is_open
        cluster.clock.advance(15.001)  # it was stopped: nothing has run meanwhile
        assert not one.fence.is_open
        await cluster.settle()
        assert one.leads  # no other replica has taken the lease
        assert one.fence.is_open


async def test_a_leader_that_was_stopped_while_another_took_over_never_writes_again():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.clock.advance(15.001)
        cluster.leases.renewed_by("two")
        await cluster.settle()
        assert not one.fence.is_open
        with pytest.raises(LeaseLost, match="is held by two now"):
            one.task.result()
        one.fence.extend(float("inf"))
        assert not one.fence.is_open


async def test_a_standby_is_not_concerned():
    async with a_cluster() as cluster:
        await cluster.candidate("one")
        two = await cluster.candidate("two")
        assert two.fence.is_open


async def test_the_lease_counts_from_when_its_renewal_was_sent_not_from_its_response():
    async with a_cluster() as cluster:

        class SlowLeases(FarLeases):
            async def update(self, kind, body):
                lease = await super().update(kind, body)
                cluster.clock.advance(3)
                return lease

        one = await cluster.candidate("one", SlowLeases(cluster.leases))
        cluster.clock.advance(2)
        await cluster.settle()  # renewed, three seconds ago
        cluster.clock.advance(12)
        assert one.fence.is_open
        cluster.clock.advance(0.001)
        assert not one.fence.is_open


async def test_a_leader_whose_renewals_return_late_stops_as_early():
    async with a_cluster() as cluster:

        class SlowLeases(FarLeases):
            async def update(self, kind, body):
                lease = await super().update(kind, body)
                cluster.clock.advance(3)
                return lease

        slow = SlowLeases(cluster.leases)
        one = await cluster.candidate("one", slow)
        cluster.clock.advance(2)
        await cluster.settle()  # renewed, three seconds ago
        slow.failure = AWAY
        await cluster.pass_time(9.5)
        assert one.leads
        await cluster.pass_time(1)  # others may take the lease over one and a half seconds later
        assert not one.leads


async def test_a_response_that_was_waiting_through_the_pause_extends_nothing():
    """The renewal was written before the process was stopped; its response is read when it wakes."""
    async with a_cluster() as cluster:
        responded = asyncio.Event()

        class LateLeases(FarLeases):
            async def update(self, kind, body):
                lease = await super().update(kind, body)
                await responded.wait()
                return lease

        late = LateLeases(cluster.leases)
        one = await cluster.candidate("one", late)
        await cluster.pass_time(2)
        responded.set()  # and in the same step the clock has moved on
        cluster.clock.advance(16)
        assert not one.fence.is_open
        late.failure = AWAY
        await cluster.settle()
        assert not one.fence.is_open


async def test_a_lease_has_whole_seconds_as_others_read_it():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one", election=LeaderElection(lease_duration_seconds=15.9))
        cluster.clock.advance(15.5)
        assert cluster.leases.spec["leaseDurationSeconds"] == 15
        assert not one.fence.is_open


async def test_a_leader_that_cannot_renew_stops_writing_before_others_may_take_over_and_goes_on_when_it_can():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.failure = AWAY
        await cluster.pass_time(11.5)
        assert one.leads  # ten seconds from its first try, as kube-scheduler counts
        await cluster.pass_time(1)
        assert not one.leads
        assert not one.fence.is_open
        await cluster.pass_time(60)
        cluster.leases.failure = None
        await cluster.pass_time(0.5)
        assert one.leads
        assert one.fence.is_open
        assert (one.led, one.stopped, one.regained) == (1, 1, 1)
        assert cluster.leases.spec["leaseTransitions"] == 0


@pytest.mark.parametrize(("holder", "message"), [("two", "is held by two now"), ("", "was held by another replica")])
async def test_a_leader_that_could_not_renew_has_lost_the_lease_if_another_led_meanwhile(holder, message):
    """Also where that one has released it again: what we decided is older than what it bound."""
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.failure = AWAY
        await cluster.pass_time(20)
        cluster.leases.renewed_by(holder)
        cluster.leases.failure = None
        await cluster.pass_time(1)
        assert cluster.leases.spec["holderIdentity"] == holder
        assert not one.fence.is_open
        with pytest.raises(LeaseLost, match=message):
            one.task.result()


async def test_writes_in_flight_end_when_the_lease_could_not_be_renewed_in_time():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")

        async def write() -> None:
            response = asyncio.get_running_loop().create_future()
            with one.fence.sending(lambda: response.set_exception(TimeoutError())):
                await response

        writing = asyncio.create_task(write())
        cluster.leases.failure = AWAY
        await cluster.pass_time(11.5)
        assert not writing.done()
        await cluster.pass_time(1)
        assert writing.done()
        with pytest.raises(TimeoutError):
            await writing


async def test_a_leader_that_is_stopped_while_it_cannot_renew_releases_the_lease_if_it_can():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.failure = AWAY
        await cluster.pass_time(14)
        assert not one.leads
        cluster.leases.failure = None
        await one.stop()
        assert cluster.leases.spec["holderIdentity"] == ""
        successor = await cluster.candidate("one, started again")
        assert successor.leads


async def test_a_leader_that_ends_writes_nothing_after_it_released_the_lease():
    async with a_cluster() as cluster:
        may_write: list[bool] = []

        class ReleasedLeases(FarLeases):
            async def update(self, kind, body):
                may_write.append(one.fence.is_open)
                return await super().update(kind, body)

        one = await cluster.candidate("one", ReleasedLeases(cluster.leases))
        await one.stop()
        assert cluster.leases.spec["holderIdentity"] == ""
        assert may_write == [False]
        assert not one.fence.is_open
