"""Claims that stand in a pod's way are given back, and the pod comes back for them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.scheduler.world import World

from mooring.base.errors import ApiError
from mooring.framework.verdicts import ClaimRelease
from mooring.scheduler.cycle.preemption import AFTER_DELETION_SECONDS, AFTER_FAILURE_SECONDS, ClaimReleases
from mooring.testing import a_pod

GIVEN_BACK = ClaimRelease("default", "claim", "c1", "7")
DELETED = ClaimRelease("default", "claim", "c1", delete=True)


class Writer:
    """Stands where the writer of claims stands."""

    def __init__(self) -> None:
        self.released: list[ClaimRelease] = []
        self.failure: Exception | None = None

    async def release(self, release: ClaimRelease) -> None:
        self.released.append(release)
        if self.failure is not None:
            raise self.failure


async def refused(release: ClaimRelease, failure: Exception | None = None) -> tuple[World, Writer]:
    """A pod waits because of the claim."""
    world, writer = World(), Writer()
    writer.failure = failure
    waiting = world.popped(a_pod("trains", uid="u1"))
    world.failures.unschedulable(waiting, "no", unschedulable={"Fit"}, nominate=None)
    releases = ClaimReleases(cast(Any, writer), world.queue)
    releases.start([release], waiting.pod)
    await releases.finish(1.0)
    return world, writer


async def test_a_claim_that_is_given_back_wakes_the_pod_by_its_own_event():
    world, writer = await refused(GIVEN_BACK)
    assert writer.released == [GIVEN_BACK]
    world.server.clock.advance(AFTER_FAILURE_SECONDS)
    world.queue.flush()
    assert not world.activated


@pytest.mark.parametrize(
    ("release", "failure", "seconds"),
    {
        "after a deletion": (DELETED, None, AFTER_DELETION_SECONDS),
        "after a failure": (GIVEN_BACK, ApiError(403, "Forbidden", "no"), AFTER_FAILURE_SECONDS),
    }.values(),
)
async def test_where_no_event_comes_the_pod_is_tried_again(release, failure, seconds):
    world, _ = await refused(release, failure)
    assert not world.activated
    world.server.clock.advance(seconds)
    world.queue.flush()
    assert world.activated
