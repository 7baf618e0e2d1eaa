"""Users of the cluster on the page: their tokens and what they may list are reviewed by the API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession
from tests.web.pages import Page, mirrored, served

from mooring.base.clock import ManualClock
from mooring.base.errors import Fault
from mooring.scheduler.serving.reviews import ClusterReviews
from mooring.testing import a_node_object, a_pod
from mooring.web.cluster_access import ClusterAccess
from mooring.web.redaction import HIDDEN, redacted

ALICE = {("nodes", ""), ("pods", "shop")}
RIGHTS = {"alice": ALICE, "root": {("nodes", ""), ("pods", "")}, "carol": {("pods", "lab")}, "dave": set()}
NODES = [a_node_object("node-1", cpu="2")]
PODS = [
    a_pod("secret", namespace="lab", cpu="1500m", node="node-1"),
    a_pod("mine", namespace="shop", cpu="100m", node="node-1"),
    a_pod("waiting", namespace="shop", cpu="1", priority=100),
    a_pod("hidden", namespace="lab", cpu="64"),
]


class ReviewingServer:
    """An API server that reviews: the token is the user's name."""

    def __init__(self) -> None:
        self.reviews: list[dict[str, Any]] = []
        self.is_down = False

    async def create(self, kind: Any, document: dict[str, Any], /) -> dict[str, Any]:
        spec = document["spec"]
        self.reviews.append(spec)
        await asyncio.sleep(0)
        if kind.kind == "TokenReview":
            is_known = spec["token"] in RIGHTS
            return {"status": {"authenticated": is_known, "user": {"username": spec["token"]} if is_known else {}}}
        if self.is_down:
            raise Fault("the API server is down")
        wanted = spec["resourceAttributes"]
        assert wanted["verb"] == "list"
        allowed = RIGHTS[spec["user"]]
        return {"status": {"allowed": (wanted["resource"], wanted.get("namespace", "")) in allowed}}


@pytest.fixture
def api_server():
    return ReviewingServer()


@pytest.fixture
def mirror():
    with mirrored(NODES, PODS) as mirror:
        yield mirror


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def page(mirror, api_server, clock):
    access = ClusterAccess(clock, ClusterReviews(api_server), lambda: mirror.pods.namespaces)
    async with served(mirror, access=access) as page:
        yield page


def as_user(page: Page, name: str) -> Page:
    return page._replace(token=name)


async def test_a_token_is_needed_and_reviewed(page):
    async with page.raw("api/v1/cluster") as response:
        assert response.status == 401
    await as_user(page, "mallory").get("cluster", 401)
    assert (await as_user(page, "root").get("cluster"))["user"] == "root"


async def test_a_user_sees_pods_of_the_namespaces_that_they_may_list(page):
    alice = as_user(page, "alice")
    assert (await alice.get("cluster"))["counts"] == {"nodes": 1, "pods": 2, "pending": 1, "bound": 1}
    assert {pod["namespace"] for pod in (await alice.get("pods"))["pods"]} == {"shop"}
    assert [pod["name"] for group in (await alice.get("queue"))["groups"] for pod in group["pods"]] == ["waiting"]
    node = await alice.get("nodes/node-1")
    assert [pod["name"] for pod in node["pods"]] == ["mine"]
    assert node["hiddenPods"] == 1
    assert {pod["namespace"] for pod in node["refused"]} <= {"shop"}


FORBIDDEN = [
    ("alice", "pods/lab/secret"),
    ("alice", "pods/lab/nothing"),
    ("alice", "pods?namespace=lab"),
    ("alice", "pods/lab/secret/why-not/node-1"),
    ("carol", "nodes"),
    ("carol", "nodes/node-1"),
    ("carol", "pods/lab/secret/why-not/node-1"),
    ("dave", "pods/shop/mine"),
]


@pytest.mark.parametrize(("user", "path"), FORBIDDEN)
async def test_what_a_user_may_not_list_is_forbidden(page, user, path):
    error = (await as_user(page, user).get(path, 403))["error"]
    assert user in error["message"]


async def test_an_explanation_names_no_pod_of_a_hidden_namespace(page):
    for path in ("pods/shop/waiting", "pods/shop/waiting/why-not/node-1"):
        assert "secret" not in str(await as_user(page, "alice").get(path))
        assert "lab/secret" in str(await as_user(page, "root").get(path))


async def test_a_what_if_shows_no_pod_of_a_hidden_namespace(page):
    for document in (
        {"reschedule": True},
        {"pod": "shop/waiting"},
        {"drain": ["node-1"], "compare": {"config": CONFIG}},
    ):
        found = await as_user(page, "alice").post("what-if", document)
        assert "lab/" not in str(found)
    assert "lab/" in str(await as_user(page, "root").post("what-if", {"reschedule": True}))
    await as_user(page, "alice").post("what-if", {"pod": "lab/secret"}, 403)


async def test_a_what_if_does_not_show_whether_a_pod_of_a_hidden_namespace_exists(page):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: lab}\n"
    pod += "spec: {containers: [{name: main, image: app}]}\n"
    there, missing = [
        await as_user(page, "alice").post("what-if", {"pods": pod.replace("NAME", name)}, 403)
        for name in ("secret", "not-there")
    ]
    assert there == missing
    assert "already" in str(await as_user(page, "root").post("what-if", {"pods": pod.replace("NAME", "secret")}, 400))


CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


async def test_a_page_causes_each_review_once(page, api_server):
    alice = as_user(page, "alice")
    await asyncio.gather(*(alice.get("cluster") for _ in range(10)))
    reviewed = [str(each.get("resourceAttributes")) for each in api_server.reviews if "resourceAttributes" in each]
    assert len(reviewed) == len(set(reviewed)) == 4


async def test_rights_are_reviewed_again_after_a_while(page, api_server, clock, monkeypatch):
    alice = as_user(page, "alice")
    await alice.get("pods/shop/mine")
    monkeypatch.setitem(RIGHTS, "alice", set())
    clock.advance(seconds=31)
    await alice.get("pods/shop/mine", 403)


async def test_without_reviews_nothing_is_served(page, api_server):
    api_server.is_down = True
    await as_user(page, "root").get("cluster", 503)


async def test_unknown_tokens_cause_a_bounded_number_of_reviews(page, api_server):
    statuses = []
    async with ClientSession() as session:
        for number in range(60):
            headers = {"Authorization": f"Bearer guess-{number}"}
            async with session.get(f"{page.url}api/v1/cluster", headers=headers) as response:
                statuses.append(response.status)
    assert set(statuses) == {401, 429}
    assert len(api_server.reviews) < 40


REDACTED = {
    "a victim": ({"evict": ["lab/secret", "shop/mine"]}, {"evict": [HIDDEN, "shop/mine"]}),
    "a sentence": ("evict lab/secret.", f"evict {HIDDEN}."),
    "a key": ({"lab/secret": 1}, {HIDDEN: 1}),
    "a change about a hidden pod": (
        {"changes": [{"change": "delete lab/secret"}, {"change": "request less"}]},
        {"changes": [{"change": "request less"}]},
    ),
    "a command in a hidden namespace": (
        {"changes": [{"command": "kubectl delete pod secret -n lab"}]},
        {"changes": []},
    ),
    "an image and a label stay": (
        "registry.example/lab/app kubernetes.io/lab",
        "registry.example/lab/app kubernetes.io/lab",
    ),
}


@pytest.mark.parametrize(("document", "expected"), REDACTED.values(), ids=REDACTED.keys())
def test_hidden_pods_are_not_named(document, expected):
    assert redacted(document, {"lab"}) == expected
