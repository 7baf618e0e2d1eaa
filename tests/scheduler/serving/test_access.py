"""Who is let in to what: decided by the cluster, remembered for ten seconds, and never by default."""

from __future__ import annotations

import pytest

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.scheduler.serving.access import Access
from mooring.scheduler.serving.authentication import Authentication, RequestCredentials
from mooring.scheduler.serving.users import NotAuthorized, Unauthenticated, Undecided, User

ALICE = User("alice", ("readers",))
A_TOKEN, NOTHING = RequestCredentials(token="secret"), RequestCredentials()


class Cluster:
    """An API server's reviews, and how often they were requested."""

    def __init__(self, tokens: dict[str, User] | None = None, allowed: set[tuple[str, str, str]] | None = None) -> None:
        self.tokens, self.allowed = tokens or {}, allowed or set()
        self.requested: list[str] = []
        self.is_down = False

    async def user_of(self, token: str) -> User | None:
        self.requested.append(f"token {token}")
        if self.is_down:
            raise Fault("connection refused")
        return self.tokens.get(token)

    async def allows(self, user: User, verb: str, path: str) -> bool:
        self.requested.append(f"{user.name} {verb} {path}")
        if self.is_down:
            raise Fault("connection refused")
        return (user.name, verb, path) in self.allowed


def an_access(cluster: Cluster | None, clock: ManualClock | None = None) -> Access:
    clock = clock or ManualClock()
    return Access(clock, Authentication(clock, tokens=cluster), rights=cluster)


async def test_a_user_with_the_right_is_let_in_and_reviewed_once():
    cluster = Cluster({"secret": ALICE}, {("alice", "get", "/metrics")})
    access = an_access(cluster)
    for _ in range(3):
        user = await access.check("get", "/metrics", A_TOKEN)
    assert user.name == "alice"
    assert user.groups == ("readers", "system:authenticated")
    assert cluster.requested == ["token secret", "alice get /metrics"]


async def test_after_ten_seconds_the_user_is_reviewed_again():
    cluster, clock = Cluster({"secret": ALICE}, {("alice", "get", "/metrics")}), ManualClock()
    access = an_access(cluster, clock)
    await access.check("get", "/metrics", A_TOKEN)
    cluster.tokens.clear()
    await access.check("get", "/metrics", A_TOKEN)
    clock.advance(10)
    with pytest.raises(Unauthenticated):
        await access.check("get", "/metrics", A_TOKEN)


async def test_a_right_that_was_taken_away_holds_ten_seconds_at_most():
    cluster, clock = Cluster({"secret": ALICE}, {("alice", "get", "/metrics")}), ManualClock()
    access = an_access(cluster, clock)
    await access.check("get", "/metrics", A_TOKEN)
    cluster.allowed.clear()
    clock.advance(10)
    with pytest.raises(NotAuthorized):
        await access.check("get", "/metrics", A_TOKEN)


@pytest.mark.parametrize(
    ("shown", "error", "logged"),
    [
        pytest.param(NOTHING, NotAuthorized, 'User "system:anonymous" cannot get path "/metrics"', id="no credentials"),
        pytest.param(RequestCredentials("wrong"), Unauthenticated, "Unauthorized", id="a token of no user"),
        pytest.param(A_TOKEN, NotAuthorized, 'User "alice" cannot get path "/metrics"', id="a user without the right"),
    ],
)
async def test_every_other_client_stays_outside(shown, error, logged):
    with pytest.raises(error, match=logged):
        await an_access(Cluster({"secret": ALICE})).check("get", "/metrics", shown)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_a_probe_gets_a_response_also_when_the_cluster_is_down(path):
    cluster = Cluster()
    cluster.is_down = True
    await an_access(cluster).check("get", path, RequestCredentials("whatever"))
    assert cluster.requested == []


async def test_the_administrators_group_needs_no_review():
    cluster = Cluster({"secret": User("root", ("system:masters",))})
    await an_access(cluster).check("get", "/metrics", A_TOKEN)
    assert cluster.requested == ["token secret"]


async def test_where_there_is_no_cluster_to_review_a_token_no_client_is_let_in():
    for shown in (A_TOKEN, NOTHING):
        with pytest.raises(NotAuthorized, match="system:anonymous"):
            await an_access(None).check("get", "/metrics", shown)


async def test_while_the_cluster_does_not_respond_no_client_is_let_in_and_reviews_are_retried(capsys):
    cluster = Cluster({"secret": ALICE}, {("alice", "get", "/metrics")})
    access = an_access(cluster)
    cluster.is_down = True
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            await access.check("get", "/metrics", A_TOKEN)
    logged = capsys.readouterr().err
    assert logged.count("create tokenreviews.authentication.k8s.io") == 1, "logged once a minute, not once a request"
    cluster.is_down = False
    await access.check("get", "/metrics", A_TOKEN)


async def test_rights_that_cannot_be_reviewed_are_named(capsys):
    cluster = Cluster()
    cluster.is_down = True
    access = an_access(cluster)
    for _ in range(2):
        with pytest.raises(
            Undecided, match='Internal Server Error: "/metrics": the SubjectAccessReview failed'
        ) as undecided:
            await access.check("get", "/metrics", NOTHING)
        assert "connection refused" not in str(undecided.value), "why is for the operator alone"
    logged = capsys.readouterr().err
    assert logged.count("create subjectaccessreviews.authorization.k8s.io") == 1
    assert "connection refused" in logged


async def test_users_who_differ_in_anything_are_reviewed_separately():
    cluster, clock = Cluster(), ManualClock()
    access = an_access(cluster, clock)
    cluster.tokens = {
        "one": User("alice", extra=(("scope", ("read",)),)),
        "two": User("alice", extra=(("scope", ("write",)),)),
    }
    for token in ("one", "two"):
        with pytest.raises(NotAuthorized):
            await access.check("get", "/metrics", RequestCredentials(token))
    assert cluster.requested.count("alice get /metrics") == 2


async def test_a_path_may_be_opened_with_everything_below_it():
    clock = ManualClock()
    no_tokens = Authentication(clock, tokens=None)
    access = Access(clock, no_tokens, rights=None, always_allowed=["/healthz", "open/*"])
    await access.check("get", "/open/door", NOTHING)
    with pytest.raises(NotAuthorized):
        await access.check("get", "/healthz/ping", NOTHING)
