"""Subresources and methods that are rejected: those that need real containers, tokens, and unknown methods."""

from __future__ import annotations

import pytest
from tests.apiserver.builders import PODS, a_pod
from tests.apiserver.conftest import Client


@pytest.mark.parametrize(
    ("method", "sub"), [("GET", "log"), ("POST", "exec"), ("GET", "attach"), ("POST", "portforward")]
)
async def test_what_only_real_containers_have_is_refused_with_the_reason(api: Client, method: str, sub: str):
    await api.post(PODS, a_pod())
    response = await api.call(method, f"{PODS}/web/{sub}")
    assert response.code == 400
    assert response.message.startswith('pod "web" is simulated: simulated containers ')
    assert (await api.call(method, f"{PODS}/none/{sub}")).code == 404


async def test_debug_containers_and_tokens_are_refused_with_the_reason(api: Client):
    await api.post(PODS, a_pod())
    response = await api.patch(f"{PODS}/web/ephemeralcontainers", {"spec": {"ephemeralContainers": []}})
    assert (response.code, response.message.split(":")[0]) == (400, 'pod "web" is simulated')
    assert "a debug container could not look at any" in response.message
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    response = await api.post(f"{accounts}/default/token", {"spec": {"audiences": []}})
    assert (response.code, response.message.split(":")[0]) == (400, "the embedded API server issues no tokens")
    assert (await api.post(f"{accounts}/none/token", {})).code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{PODS}/web"),
        ("PUT", PODS),
        ("PATCH", PODS),
        ("GET", f"{PODS}/web/binding"),
        ("DELETE", f"{PODS}/web/status"),
    ],
)
async def test_a_method_that_makes_no_sense_is_not_allowed(api: Client, method: str, path: str):
    await api.post(PODS, a_pod())
    assert (await api.call(method, path, {} if method != "GET" else None)).code == 405
