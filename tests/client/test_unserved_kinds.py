"""A kind of Kubernetes' own that an older server does not have, requested by an account that may not list it.

The server checks rights before kinds: it responds 403 where it could respond 404. Discovery distinguishes the two.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.client.conftest import until
from tests.client.test_reflector import Quota, a_list, a_status, problem_of, reflecting

from mooring.client import Reflector
from mooring.objects.resource import ResourceClaim

FORBIDDEN = (403, a_status(403, "Forbidden", 'User "s" cannot list resource "resourceclaims"'))


def discoveries(server: Any) -> list[str]:
    return [path for path, _ in server.requested("GET") if path.count("/") == 3]


def serving(server: Any, discovery: Any) -> None:
    """The server forbids everything but discovery."""

    async def respond(request: web.Request) -> web.StreamResponse:
        is_discovery = request.path.count("/") == 3
        response: web.StreamResponse = server.plain(discovery if is_discovery else FORBIDDEN)
        return response

    server.respond = respond


ABSENT = {
    "the whole version is absent": (404, a_status(404)),
    "the version has other kinds": {"resources": [{"name": "resourceslices"}, {"name": "resourceclaims/status"}]},
}


@pytest.mark.parametrize("discovery", ABSENT.values(), ids=ABSENT.keys())
async def test_a_kind_that_is_not_served_has_no_objects_whatever_our_rights(waiting_client, server, feed, discovery):
    serving(server, discovery)
    reflector = Reflector(waiting_client, ResourceClaim, feed)
    assert (
        await problem_of(reflector)
        == "the server has no resourceclaims.resource.k8s.io (v1); is that API enabled there?"
    )
    assert reflector.is_listed
    await feed.receives(("listed", []))


async def test_it_is_not_listed_again_until_it_is_served(client, server, feed):
    """403s are counted, and alerts fire on them."""
    serving(server, (404, a_status(404)))
    reflector = Reflector(client, ResourceClaim, feed)
    async with reflecting(reflector):
        await until(lambda: len(discoveries(server)) >= 3)
        assert len(server.requested("GET")) - len(discoveries(server)) == 1
        claim = {"metadata": {"name": "gpu", "namespace": "shop", "uid": "1"}, "spec": {}}
        server.lists += [{"resources": [{"name": "resourceclaims"}]}, a_list(claim)]
        server.respond = None
        await feed.receives(("listed", []), ("listed", ["gpu"]))
        assert reflector.problem is None


FORBIDDEN_INDEED = {
    "it is served": {"resources": [{"name": "resourceclaims"}]},
    "what is served cannot be found out": (500, a_status(500)),
    "discovery is invalid": {"resources": "all of them"},
}


@pytest.mark.parametrize("discovery", FORBIDDEN_INDEED.values(), ids=FORBIDDEN_INDEED.keys())
async def test_a_kind_that_may_be_served_is_forbidden(waiting_client, server, feed, discovery):
    serving(server, discovery)
    reflector = Reflector(waiting_client, ResourceClaim, feed)
    assert (await problem_of(reflector)).startswith("not allowed to list and watch resourceclaims.resource.k8s.io")
    assert not reflector.is_listed


async def test_a_custom_kind_that_is_forbidden_is_waited_for(waiting_client, server, feed):
    serving(server, (404, a_status(404)))
    reflector: Reflector[Quota] = Reflector(waiting_client, Quota, feed)
    assert (await problem_of(reflector)).startswith("not allowed to list and watch quotas.example.com")
    assert not reflector.is_listed
