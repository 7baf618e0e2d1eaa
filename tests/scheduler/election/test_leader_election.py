"""Who leads, step by step: leases in memory, time in the test's hands, several candidates on one lease."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduler.election.candidates import Candidate, FarLeases, MemoryLeases, a_cluster

from mooring.base.errors import ApiError
from mooring.config.model import LeaderElection
from mooring.scheduler.election.leader_election import LeaseLost


async def test_a_lease_that_another_client_touched_is_looked_at_again():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        await cluster.pass_time(10)
        assert one.second_looks == 0
        assert cluster.leases.lease is not None
        cluster.leases.lease["metadata"]["resourceVersion"] = "touched"
        await cluster.pass_time(10)
        assert (one.leads, one.second_looks) == (True, 1)


async def test_the_first_creates_the_lease_and_leads():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        assert one.leads
        assert one.led == 1
        assert cluster.leases.spec["holderIdentity"] == "one"
        assert cluster.leases.spec["leaseDurationSeconds"] == 15
        assert cluster.leases.spec["leaseTransitions"] == 0
        assert cluster.leases.spec["acquireTime"] == cluster.leases.spec["renewTime"] == "2023-11-14T22:13:20.000000Z"


async def test_a_leader_renews_every_two_seconds_with_one_request():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        requested = cluster.leases.gets
        await cluster.pass_time(60)
        assert one.leads
        assert cluster.leases.writes == 31
        assert cluster.leases.gets == requested
        assert cluster.leases.spec["leaseTransitions"] == 0
        assert cluster.leases.spec["acquireTime"] != cluster.leases.spec["renewTime"]


async def test_others_stand_by_while_the_leader_renews():
    async with a_cluster() as cluster:
        one, two = await cluster.candidate("one"), await cluster.candidate("two")
        await cluster.pass_time(120)
        assert (one.leads, two.leads) == (True, False)
        assert two.elector.leader == "one"


async def test_when_a_leader_vanishes_another_leads_after_the_lease_time_and_not_before():
    async with a_cluster() as cluster:
        mine = MemoryLeases()
        mine.lease = {
            "metadata": {"name": "kube-scheduler", "resourceVersion": "0"},
            # Written by a clock that is hours ahead: it must not count.
            "spec": {
                "holderIdentity": "gone",
                "leaseDurationSeconds": 15,
                "renewTime": "2030-01-01T00:00:00.000000Z",
                "leaseTransitions": 3,
            },
        }
        two = await cluster.candidate("two", mine)
        await cluster.pass_time(14.5)
        assert not two.leads
        await cluster.pass_time(5)
        assert two.leads
        assert mine.spec["leaseTransitions"] == 4


async def test_a_leader_that_is_stopped_releases_the_lease_and_the_next_leads_soon():
    async with a_cluster() as cluster:
        one, two = await cluster.candidate("one"), await cluster.candidate("two")
        await one.stop()
        assert cluster.leases.spec["holderIdentity"] == ""
        assert not one.leads
        await cluster.pass_time(5)
        assert two.leads
        assert cluster.leases.spec["leaseTransitions"] == 1


async def test_a_leader_that_is_stopped_while_it_renews_releases_the_lease_all_the_same():
    """The renewal is written, and its response is not waited for."""
    async with a_cluster() as cluster:
        one, two = await cluster.candidate("one"), await cluster.candidate("two")
        cluster.leases.renewed_by("one")
        await one.stop()
        assert cluster.leases.spec["holderIdentity"] == ""
        await cluster.pass_time(5)
        assert two.leads


async def test_a_lease_that_another_took_is_not_given_back():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.renewed_by("two")
        await one.stop()
        assert cluster.leases.spec["holderIdentity"] == "two"


async def test_one_that_never_led_releases_nothing():
    async with a_cluster() as cluster:
        await cluster.candidate("one")
        two = await cluster.candidate("two")
        await two.stop()
        assert cluster.leases.spec["holderIdentity"] == "one"


@pytest.mark.parametrize("trouble", ["fails", "hangs"])
async def test_a_leader_that_cannot_renew_stops_before_others_may_take_over(trouble):
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        if trouble == "fails":
            cluster.leases.failure = ApiError(500, "InternalError", "etcd is gone")
        else:
            cluster.leases.hangs = True
        await cluster.pass_time(9.5)
        assert one.leads
        await cluster.pass_time(5)
        assert not one.leads
        assert not one.fence.is_open


@pytest.mark.parametrize("renew_deadline", [10, 14])
async def test_a_last_try_that_hangs_ends_before_others_may_take_over(renew_deadline):
    """Refused until the last moment, and then no response at all."""
    async with a_cluster() as cluster:
        far = FarLeases(cluster.leases)
        one = await cluster.candidate("one", far, LeaderElection(renew_deadline_seconds=renew_deadline))
        two = await cluster.candidate("two")
        far.failure = ApiError(500, "InternalError", "etcd is gone")
        await cluster.pass_time(renew_deadline - 0.25)
        far.hangs = True
        assert one.leads
        await cluster.pass_time(14.75 - renew_deadline + 0.25, step=0.25)
        still_leads, far.hangs, far.failure = one.leads, False, None
        assert not still_leads
        await cluster.pass_time(5)
        assert [one.leads, two.leads].count(True) == 1


async def test_who_was_asleep_beyond_the_deadline_may_try_once():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.clock.advance(60)
        await cluster.settle()
        assert one.leads
        await cluster.pass_time(20)
        assert one.leads


async def test_trouble_that_passes_in_time_costs_nothing():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.failure = ApiError(503, "ServiceUnavailable", "restarting")
        await cluster.pass_time(8)
        cluster.leases.failure = None
        await cluster.pass_time(60)
        assert one.leads
        assert cluster.leases.spec["leaseTransitions"] == 0


async def test_a_lease_that_another_candidate_took_is_lost_at_once():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        assert cluster.leases.lease is not None
        cluster.leases.lease["spec"] |= {"holderIdentity": "usurper"}
        cluster.leases.lease["metadata"]["resourceVersion"] = "other"
        await cluster.pass_time(3)
        with pytest.raises(LeaseLost, match="is held by usurper now"):
            one.task.result()


async def test_a_lease_that_was_deleted_is_made_again():
    async with a_cluster() as cluster:
        one = await cluster.candidate("one")
        cluster.leases.lease = None
        await cluster.pass_time(3)
        assert one.leads
        assert cluster.leases.spec["holderIdentity"] == "one"


async def test_two_that_start_together_do_not_both_lead():
    async with a_cluster() as cluster:
        candidates = [Candidate(name, cluster.leases, cluster.clock) for name in ("one", "two", "three")]
        cluster.candidates += candidates
        await cluster.settle()
        assert sum(candidate.leads for candidate in candidates) == 1


async def test_a_lease_that_we_may_not_touch_is_named_with_the_rule_and_waited_for(capsys):
    async with a_cluster() as cluster:
        logged = 'User "u" cannot get resource "leases" in API group "coordination.k8s.io"'
        cluster.leases.failure = ApiError(403, "Forbidden", logged)
        waiting = await cluster.candidate("a")
        line = capsys.readouterr().err
        assert "Failed to acquire the lease" in line
        assert "kube-system/kube-scheduler" in line
        assert "a Role in namespace kube-system with this rule" in line
        assert r"verbs: [\"get\", \"create\", \"update\"]" in line
        cluster.leases.failure = None
        await cluster.pass_time(5)
        assert waiting.leads


async def test_health_suffers_only_where_we_hold_a_lease_that_we_cannot_renew():
    async with a_cluster() as cluster:
        one, two = await cluster.candidate("one"), await cluster.candidate("two")
        assert (one.elector.problem(), two.elector.problem()) == (None, None)
        cluster.clock.advance(36)  # the thread has not run: nothing has settled
        assert "failed election to renew leadership" in (one.elector.problem() or "")
        assert two.elector.problem() is None


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["work", "fail", "hang", "stop one", "add one"]),
            st.floats(0.5, 20),
        ),
        max_size=8,
    )
)
async def test_there_is_never_more_than_one_leader(happenings):
    async with a_cluster() as cluster:
        for number in range(2):
            await cluster.candidate(f"candidate-{number}")
        for number, (what, seconds) in enumerate(happenings):
            cluster.leases.failure = ApiError(500, "InternalError", "no") if what == "fail" else None
            cluster.leases.hangs = what == "hang"
            if what == "stop one" and cluster.candidates:
                await cluster.candidates[number % len(cluster.candidates)].stop()
            if what == "add one":
                await cluster.candidate(f"late-{number}")
            for _ in range(int(seconds / 0.5)):
                await cluster.pass_time(0.5)
                assert sum(candidate.leads for candidate in cluster.candidates) <= 1
        cluster.leases.failure, cluster.leases.hangs = None, False
        await cluster.candidate("last")
        await cluster.pass_time(40)
        assert sum(candidate.leads for candidate in cluster.candidates) == 1
