"""Writes of the page: refused unless they are allowed, and then made by the API server with the user's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.web.pages import Page, served
from tests.web.test_stream import NODE, a_document

from mooring.client import ApiClient, Connection
from mooring.config import default_configuration
from mooring.framework import FeatureGates
from mooring.objects import Node, Pod
from mooring.plugins.catalogue import catalogue
from mooring.web.access import OperatorAccess, Rights
from mooring.web.mirror import live_mirror

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: main, image: app}]}\n"


def connection_to(server) -> Connection:
    return Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)


@pytest.fixture
async def page(server) -> AsyncIterator[Page]:
    server.load([NODE, a_document("web")])
    registry = catalogue()
    arguments = (connection_to(server), default_configuration(registry), registry, FeatureGates())
    async with live_mirror(*arguments) as mirror, served(mirror, allow_actions=True) as page:
        yield page


@pytest.fixture
async def client(server) -> AsyncIterator[ApiClient]:
    async with ApiClient(connection_to(server)) as client:
        yield client


async def test_a_node_is_cordoned_and_uncordoned(page, client):
    assert (await page.get("cluster"))["actions"]
    for verb, is_cordoned in (("cordon", True), ("uncordon", False)):
        await page.post(f"nodes/node-1/{verb}", {})
        assert (await client.get_as(Node, "node-1")).spec.unschedulable is is_cordoned


async def test_a_pod_is_deleted_and_another_created(page, client):
    async with page.raw("api/v1/pods/default/web", "DELETE", headers=page.headers) as response:
        assert response.status == 200
    assert await page.post("pods", {"pods": POD}, 201) == {"created": ["default/new"]}
    assert [each["metadata"]["name"] for each in await client.list(Pod.KIND)] == ["new"]


MISTAKES = {
    "a node that does not exist": ("nodes/node-9/cordon", {}, 404),
    "another kind": ("pods", {"pods": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"}, 400),
    "a pod that the server refuses": ("pods", {"pods": POD.replace("name: new", "name: NEW")}, 422),
    "a pod without a name": ("pods", {"pods": POD.replace("{name: new}", "{}")}, 400),
    "a namespace that is a path": ("pods", {"pods": POD.replace("{name: new}", "{name: new, namespace: ..}")}, 400),
    "a namespace that is no text": ("pods", {"pods": POD.replace("{name: new}", "{name: new, namespace: [a]}")}, 400),
    "a name that is no text": ("pods", {"pods": POD.replace("{name: new}", "{name: [new]}")}, 400),
    "nothing": ("pods", {"pods": ""}, 400),
    "no YAML": ("pods", {"pods": "{{"}, 400),
}


@pytest.mark.parametrize(("path", "document", "status"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_write_that_fails_is_explained(page, path, document, status):
    assert (await page.post(path, document, status))["error"]["message"]


async def test_a_user_writes_with_their_own_token(server, monkeypatch):
    """Not with the operator's: this user's token is none of the cluster, which refuses it."""

    async def rights(self, request, token):
        return Rights("alice", token="not-the-operators")

    server.load([NODE])
    monkeypatch.setattr(OperatorAccess, "rights", rights)
    registry = catalogue()
    arguments = (connection_to(server), default_configuration(registry), registry, FeatureGates())
    async with live_mirror(*arguments) as mirror, served(mirror, allow_actions=True) as page:
        await page.post("nodes/node-1/cordon", {}, 401)


WRITES = [("POST", "nodes/node-1/cordon"), ("POST", "pods"), ("DELETE", "pods/default/web")]


@pytest.mark.parametrize(("method", "path"), WRITES)
async def test_without_the_flag_every_write_is_refused(server, method, path):
    server.load([NODE, a_document("web")])
    registry = catalogue()
    arguments = (connection_to(server), default_configuration(registry), registry, FeatureGates())
    async with (
        live_mirror(*arguments) as mirror,
        served(mirror) as page,
        page.raw(f"api/v1/{path}", method, headers=page.headers, json={"pods": POD}) as response,
    ):
        assert response.status == 403
        assert "--allow-actions" in (await response.json())["error"]["message"]
