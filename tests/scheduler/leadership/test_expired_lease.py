"""What a leader may write, and whether it releases its lease, when it could not renew in time."""

from __future__ import annotations

import asyncio

import pytest
from tests.scheduler.leadership.candidates import FarLeases, a_cluster

from mooring.base.errors import ApiError, Unreachable
from mooring.config.model import LeaderElection
from mooring.scheduler.leader_election import LeaseLost

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


async def test_the_lease_counts_from_when_its_renewal_was_sent_not_from_its_answer():
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


async def test_an_answer_that_was_waiting_through_the_pause_extends_nothing():
    """The renewal was written before the process was stopped; its answer is read when it wakes."""
    async with a_cluster() as cluster:
        answered = asyncio.Event()

        class LateLeases(FarLeases):
            async def update(self, kind, body):
                lease = await super().update(kind, body)
                await answered.wait()
                return lease

        late = LateLeases(cluster.leases)
        one = await cluster.candidate("one", late)
        await cluster.pass_time(2)
        answered.set()  # and in the same step the clock has moved on
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


async def test_a_lost_lease_is_released_when_the_server_is_back_before_it_expires():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.failure = AWAY
        await cluster.pass_time(12)
        assert not one.leads
        assert cluster.leases.spec["holderIdentity"] == "one"
        cluster.leases.failure = None
        await cluster.pass_time(1)
        assert cluster.leases.spec["holderIdentity"] == ""
        with pytest.raises(LeaseLost, match="could not be renewed for 10 s"):
            one.task.result()
        successor = await cluster.candidate("one, started again")
        assert successor.leads


async def test_a_lost_lease_is_not_released_while_a_write_is_in_flight():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        with one.fence.sending():
            cluster.leases.failure = AWAY
            await cluster.pass_time(11)
            cluster.leases.failure = None
            await cluster.pass_time(2)
            assert not one.leads
            assert cluster.leases.spec["holderIdentity"] == "one"
        await cluster.pass_time(0.5)
        assert cluster.leases.spec["holderIdentity"] == ""


async def test_a_server_that_stays_away_is_waited_for_until_the_lease_expires():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.hangs = True
        await cluster.pass_time(16)
        assert one.task.done()
        assert cluster.leases.spec["holderIdentity"] == "one"


async def test_a_lost_lease_that_another_has_taken_is_left_alone():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.failure = AWAY
        await cluster.pass_time(11)
        cluster.leases.renewed_by("two")
        cluster.leases.failure = None
        await cluster.pass_time(1)
        assert cluster.leases.spec["holderIdentity"] == "two"
        assert one.task.done()


async def test_a_leader_that_ends_writes_nothing_after_it_released_the_lease():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        await one.stop()
        assert cluster.leases.spec["holderIdentity"] == ""
        assert not one.fence.is_open


async def test_a_server_error_when_releasing_is_retried():
    async with a_cluster() as cluster:
        await cluster.candidate("one")
        cluster.leases.failure = AWAY
        await cluster.pass_time(11)
        cluster.leases.failure = ApiError(403, "Forbidden", "the server is starting")
        await cluster.pass_time(1)
        cluster.leases.failure = None
        await cluster.pass_time(1)
        assert cluster.leases.spec["holderIdentity"] == ""
