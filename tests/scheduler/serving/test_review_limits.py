"""How many reviews clients may cause."""

from __future__ import annotations

import asyncio

import pytest

from mooring.base.clock import ManualClock
from mooring.scheduler.serving.access import Access
from mooring.scheduler.serving.authentication import Authentication, RequestCredentials
from mooring.scheduler.serving.review_limits import ReviewLimits
from mooring.scheduler.serving.users import NotAuthorized, TooManyRequests, Unauthenticated, User


class Reviewer:
    """Knows one token; counts; responds when `may_respond` is set."""

    def __init__(self) -> None:
        self.reviews = 0
        self.may_respond = asyncio.Event()
        self.may_respond.set()

    async def user_of(self, token: str) -> User | None:
        self.reviews += 1
        await self.may_respond.wait()
        return User("prometheus") if token == "good" else None

    async def allows(self, user: User, verb: str, path: str) -> bool:
        self.reviews += 1
        return user.name == "prometheus"


def an_access(clock: ManualClock, reviewer: Reviewer) -> Access:
    limits = ReviewLimits(clock.monotonic)
    return Access(clock, Authentication(clock, tokens=reviewer, limits=limits), rights=reviewer, limits=limits)


async def test_unknown_clients_cause_few_reviews_and_what_was_confirmed_is_renewed():
    clock, reviewer = ManualClock(), Reviewer()
    access = an_access(clock, reviewer)
    good = RequestCredentials(token="good", client="10.0.0.1")
    await access.check("get", "/metrics", good)
    for at in range(18):
        with pytest.raises(Unauthenticated):
            await access.check("get", "/metrics", RequestCredentials(token=f"bad {at}", client="10.0.0.1"))
    for at in range(1_000):
        with pytest.raises(TooManyRequests):
            await access.check("get", "/metrics", RequestCredentials(token=f"worse {at}", client="10.0.0.1"))
    assert reviewer.reviews == 20
    clock.advance(11)  # what was kept is over; the tokens of the bucket are used up at once again
    for at in range(1_000):
        with pytest.raises((NotAuthorized, TooManyRequests)):
            await access.check("get", f"/{at}", RequestCredentials(client="10.0.0.1"))
    assert (await access.check("get", "/metrics", good)).name == "prometheus"


async def test_one_client_does_not_use_up_the_share_of_another():
    access = an_access(ManualClock(), Reviewer())
    for at in range(100):
        with pytest.raises((Unauthenticated, TooManyRequests)):
            await access.check("get", "/metrics", RequestCredentials(token=f"bad {at}", client="10.0.0.1"))
    await access.check("get", "/metrics", RequestCredentials(token="good", client="10.0.0.2"))


async def test_reviews_at_once_are_bounded():
    reviewer = Reviewer()
    access = an_access(ManualClock(), reviewer)
    reviewer.may_respond.clear()
    requested = [
        asyncio.ensure_future(
            access.check("get", "/metrics", RequestCredentials(token=f"{client} {at}", client=f"10.0.0.{client}"))
        )
        for client in range(9)
        for at in range(9)
    ]
    await asyncio.sleep(0)
    assert reviewer.reviews == 16
    reviewer.may_respond.set()
    responses = await asyncio.gather(*requested, return_exceptions=True)
    assert {type(response) for response in responses} == {Unauthenticated, TooManyRequests}
    with pytest.raises(Unauthenticated):
        await access.check("get", "/metrics", RequestCredentials(token="another", client="10.0.0.1"))


async def test_a_token_that_is_no_text_is_nobodys_and_is_not_reviewed():
    reviewer = Reviewer()
    access = an_access(ManualClock(), reviewer)
    with pytest.raises(Unauthenticated):
        await access.check("get", "/metrics", RequestCredentials(token="\udcff"))
    assert reviewer.reviews == 0
