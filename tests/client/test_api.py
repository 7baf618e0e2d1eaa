"""The verbs: what is sent, and what each kind of response becomes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from tests.client.conftest import FakeServer

from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError, Unreachable
from mooring.client import ApiClient, Connection
from mooring.client.api import path_of
from mooring.objects import CustomResource, Kind, Node, Pod
from mooring.objects.core import Binding, ObjectReference
from mooring.objects.meta import ObjectMeta

PODS, NODES = Pod.KIND, Node.KIND
ROLES = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)


class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Cluster"):
    spec: dict[str, int] = {}


CALLS: dict[str, tuple[Any, str, str, Any]] = {
    "get one of a namespace": (
        lambda client: client.get(PODS, "web", "shop"),
        "GET", "/api/v1/namespaces/shop/pods/web", None,
    ),
    "get without a namespace looks in the connection's own": (
        lambda client: client.get(PODS, "web"),
        "GET", "/api/v1/namespaces/default/pods/web", None,
    ),
    "get of a kind without namespaces": (
        lambda client: client.get(NODES, "n1"),
        "GET", "/api/v1/nodes/n1", None,
    ),
    "a name may have a colon": (
        lambda client: client.get(ROLES, "system:node"),
        "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node", None,
    ),
    "a name cannot reach into another path": (
        lambda client: client.get(NODES, "a/../b?x#y"),
        "GET", "/api/v1/nodes/a%2F..%2Fb%3Fx%23y", None,
    ),
    "create a document": (
        lambda client: client.create(PODS, {"metadata": {"name": "web"}}, "shop"),
        "POST", "/api/v1/namespaces/shop/pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
    ),
    "create takes the namespace of the document": (
        lambda client: client.create(PODS, {"metadata": {"name": "web", "namespace": "shop"}}),
        "POST", "/api/v1/namespaces/shop/pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}},
    ),
    "create a struct": (
        lambda client: client.create(Quota.KIND, Quota(metadata=ObjectMeta(name="team"), spec={"pods": 3})),
        "POST", "/apis/example.com/v1/quotas",
        {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": {"name": "team"}, "spec": {"pods": 3}},
    ),
    "create a subresource that is a kind of its own": (
        lambda client: client.create(
            PODS, Binding(target=ObjectReference(kind="Node", name="n1")), "shop", name="web", subresource="binding"
        ),
        "POST", "/api/v1/namespaces/shop/pods/web/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": {}, "target": {"kind": "Node", "name": "n1"}},
    ),
    "update": (
        lambda client: client.update(NODES, {"metadata": {"name": "n1"}}, subresource="status"),
        "PUT", "/api/v1/nodes/n1/status",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
    ),
    "patch": (
        lambda client: client.patch(PODS, "web", "shop", {"status": {}}, subresource="status"),
        "PATCH", "/api/v1/namespaces/shop/pods/web/status", {"status": {}},
    ),
    "delete": (
        lambda client: client.delete(PODS, "web", "shop"),
        "DELETE", "/api/v1/namespaces/shop/pods/web", None,
    ),
    "delete this very one, now": (
        lambda client: client.delete(PODS, "web", "shop", grace_seconds=0, uid="u1"),
        "DELETE", "/api/v1/namespaces/shop/pods/web",
        {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": "u1"}},
    ),
    "bind, if it is still the same pod": (
        lambda client: client.bind("shop", "web", "u1", "n1"),
        "POST", "/api/v1/namespaces/shop/pods/web/binding",
        {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"namespace": "shop", "name": "web", "uid": "u1"},
            "target": {"kind": "Node", "name": "n1"},
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "method", "path", "body"), CALLS.values(), ids=CALLS.keys())
async def test_what_is_sent(client, server, call, method, path, body):
    server.lists.append({})
    await call(client)
    assert server.requests == [(method, path, body)]


@pytest.mark.parametrize(
    ("form", "content_type"),
    [
        ("strategic", "application/strategic-merge-patch+json"),
        ("merge", "application/merge-patch+json"),
        ("json", "application/json-patch+json"),
    ],
)
async def test_each_form_of_patch_has_its_content_type(client, server, form, content_type):
    server.lists.append({})
    await client.patch(NODES, "n1", None, {}, form=form)
    assert server.headers[0]["Content-Type"] == content_type


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_what_cannot_be_a_name_is_not_sent(client, server, name):
    with pytest.raises(ValueError, match="cannot be the name"):
        await client.delete(PODS, name, "shop")
    assert server.requests == []


async def test_a_list_is_all_pages(client, server):
    server.lists += [
        {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]},
        {"metadata": {}, "items": [{"metadata": {"name": "b"}}]},
    ]
    pods = await client.list(PODS, "shop", label_selector="app in (web)")
    assert [pod["metadata"]["name"] for pod in pods] == ["a", "b"]
    assert server.requests[1][1].endswith("/shop/pods?labelSelector=app+in+%28web%29&limit=500&continue=more")


async def test_an_empty_list_may_have_no_items_at_all(client, server):
    server.lists.append({"metadata": {}, "items": None})
    assert await client.list(PODS) == []


async def test_an_object_can_be_had_as_a_struct(client, server):
    server.lists.append({"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
    assert (await client.get_as(Node, "n1")).spec.unschedulable


async def test_requests_have_a_user_agent_and_accept_plain_json(server, clock):
    server.lists.append({})
    async with ApiClient(server.connection(token="t0ken"), clock=clock, user_agent="mooring/scheduler") as client:
        await client.server_version()
    sent = server.headers[0]
    assert sent["User-Agent"] == "mooring/scheduler"
    assert sent["Accept"] == "application/json"
    assert sent["Accept-Encoding"] == "identity"
    assert sent["Authorization"] == "Bearer t0ken"


async def test_an_error_keeps_the_servers_status(client, server):
    server.lists.append((409, {"kind": "Status", "code": 409, "reason": "Conflict", "message": "pod is bound"}))
    with pytest.raises(ApiError, match="pod is bound") as refusal:
        await client.bind("shop", "web", "u", "n1")
    assert (refusal.value.code, refusal.value.reason) == (409, "Conflict")


async def test_a_refusal_without_an_explanation_still_has_a_message(client, server):
    async def respond(request):
        return web.Response(status=502, text="bad gateway\n")

    server.respond = respond
    with pytest.raises(ApiError, match=r"^bad gateway$") as refusal:
        await client.get(NODES, "n1")
    assert refusal.value.code == 502


async def test_a_response_that_is_no_json_names_the_host(client, server):
    async def respond(request):
        return web.Response(text="<html>login</html>")

    server.respond = respond
    with pytest.raises(ApiError, match=rf"127.0.0.1:{server.port} \(from a test\) did not respond like an API server"):
        await client.server_version()


async def test_a_busy_server_is_retried_after_its_delay(client, server, clock):
    server.lists += [(429, {}, {"Retry-After": "3"}), (429, {"details": {"retryAfterSeconds": 2}}), {"ok": True}]
    assert await client.get(NODES, "n1") == {"ok": True}
    assert clock.slept == [3.0, 2.0]


async def test_a_server_that_is_down_with_retry_after_is_retried(client, server, clock):
    server.lists += [(503, {}, {"Retry-After": "5"}), {"ok": True}]
    assert await client.get(NODES, "n1") == {"ok": True}
    assert clock.slept == [5.0]


async def test_a_failing_server_is_not_retried_by_itself(client, server, clock):
    server.lists.append((500, {"message": "etcd is away"}))
    with pytest.raises(ApiError, match="etcd is away"):
        await client.get(NODES, "n1")
    assert clock.slept == []


async def test_a_server_that_stays_busy_is_given_up(client, server, clock):
    server.lists += [(429, {"message": "too many requests"}, {"Retry-After": "1"})] * 20
    with pytest.raises(ApiError, match="too many requests") as refusal:
        await client.get(NODES, "n1")
    assert refusal.value.retry_after == 1.0
    assert len(server.requests) == 10


class Crowd:
    """Responds to no request until so many wait; counts how many waited at the same time."""

    def __init__(self, server: FakeServer, wanted: int) -> None:
        self.most = self._waiting = 0
        self._server, self._wanted, self._is_there = server, wanted, asyncio.Event()
        server.respond = self.respond

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        self._waiting += 1
        self.most = max(self.most, self._waiting)
        if self._waiting == self._wanted:
            self._is_there.set()
        await self._is_there.wait()
        self._waiting -= 1
        return self._server.plain({})


async def test_no_more_requests_are_in_flight_than_allowed(server, clock):
    crowd = Crowd(server, 3)
    async with ApiClient(server.connection(), clock=clock, in_flight=3) as client:
        await asyncio.gather(*(client.get(NODES, f"n{number}") for number in range(12)))
    assert crowd.most == 3
    assert len(server.requests) == 12


async def test_without_a_limit_that_is_set_there_is_still_a_bound_on_requests_in_flight(fake, serve):
    crowd = Crowd(unlimited := fake(), 64)
    async with serve(unlimited, None):
        where = unlimited.connection(server=f"http://127.0.0.1:{unlimited.port}", ca_data=None)
        async with ApiClient(where) as client:
            await asyncio.gather(*(client.get(NODES, f"n{number}") for number in range(200)))
    assert crowd.most == 64


async def test_a_server_that_takes_a_request_and_never_responds_is_given_up(client, server):
    async def respond(request):
        await asyncio.Event().wait()

    server.respond = respond
    with pytest.raises(Unreachable, match="it does not respond in time"):
        await client.transport.request("GET", "/api/v1/nodes", seconds=0.1)


async def test_a_watch_that_neither_brings_anything_nor_ends_is_given_up(client, server):
    async def follow() -> None:
        async with client.transport.stream("/api/v1/nodes?watch=true", seconds=0.1) as chunks:
            async for _ in chunks:
                pass

    with pytest.raises(Unreachable, match="it does not respond in time"):
        await follow()


async def test_requests_are_paced_after_the_burst(server, clock):
    server.lists += [{}] * 6
    async with ApiClient(server.connection(), clock=clock, qps=2, burst=3) as client:
        for _ in range(6):
            await client.get(NODES, "n1")
    assert clock.slept == [0.5, 0.5, 0.5]


async def test_client_side_throttling_is_logged_now_and_then(server, clock, capsys):
    server.lists += [{}] * 40
    async with ApiClient(server.connection(), clock=ManualClock(), qps=2, burst=1) as client:
        waiting = [asyncio.create_task(client.get(NODES, f"n{number}")) for number in range(40)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    (line,) = [each for each in capsys.readouterr().err.splitlines() if "Client-side throttling" in each]
    assert "qps=2" in line
    assert "burst=1" in line
    assert "GET /api/v1/nodes/n2" in line


async def test_a_short_wait_is_not_worth_a_line(server, clock, capsys):
    server.lists += [{}] * 6
    async with ApiClient(server.connection(), clock=clock, qps=2, burst=3) as client:
        for _ in range(6):
            await client.get(NODES, "n1")
    assert "Client-side throttling" not in capsys.readouterr().err


async def test_a_client_beside_another_has_limits_of_its_own(server, clock):
    server.lists += [{}] * 4
    async with (
        ApiClient(server.connection(), clock=clock, qps=1, burst=2) as client,
        client.beside("mooring events") as other,
    ):
        for each in (client, client, other, other):
            await each.get(NODES, "n1")
        assert clock.slept == []
        server.lists.append({})
        await other.get(NODES, "n1")
        assert clock.slept == [1.0]
    assert [each["User-Agent"] for each in server.headers] == ["mooring"] * 2 + ["mooring events"] * 3


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (
            'pods "web" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace '
            '"shop"',
            '{apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]}',
        ),
        (
            'leases.coordination.k8s.io "l" is forbidden: User "u" cannot get resource "leases" in API group '
            '"coordination.k8s.io" in the namespace "kube-system"',
            '{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]}',
        ),
    ],
)
async def test_a_request_for_which_a_right_is_missing_names_the_rule_that_would_allow_it(client, server, message, rule):
    server.lists.append((403, {"code": 403, "reason": "Forbidden", "message": message}))
    with pytest.raises(ApiError) as refusal:
        await client.get(NODES, "n1")
    assert str(refusal.value) == f"{message}; this RBAC rule would allow it: {rule}"
    assert refusal.value.message == message


async def test_other_reasons_for_a_403_are_left_as_they_are(client, server):
    server.lists.append((403, {"code": 403, "reason": "Forbidden", "message": "exceeded quota: q"}))
    with pytest.raises(ApiError, match=r"^exceeded quota: q$"):
        await client.get(NODES, "n1")


async def test_a_negative_pace_is_no_limit(server, clock):
    server.lists += [{}] * 5
    async with ApiClient(server.connection(), clock=clock, qps=-1, burst=1) as client:
        for _ in range(5):
            await client.get(NODES, "n1")
    assert clock.slept == []


async def test_a_server_under_a_path_is_reached_there(server, clock):
    server.lists.append({})
    where = server.connection(server=f"https://127.0.0.1:{server.port}/k8s/clusters/c-1/")
    async with ApiClient(where, clock=clock) as client:
        await client.get(NODES, "n1")
    assert server.requests[0][1] == "/k8s/clusters/c-1/api/v1/nodes/n1"


async def test_a_refused_connection_names_host_and_source(reserved, clock):
    port = reserved.getsockname()[1]
    where = Connection(server=f"https://127.0.0.1:{port}", source='/etc/kube.conf, context "prod"')
    async with ApiClient(where, clock=clock) as client:
        with pytest.raises(Unreachable) as failure:
            await client.server_version()
    assert str(failure.value) == (
        f'cannot reach the API server 127.0.0.1:{port} (from /etc/kube.conf, context "prod"): '
        "connection refused; is the server running, and is this its port?"
    )


async def test_a_name_that_does_not_resolve_is_reported_as_that(clock):
    async with ApiClient(Connection(server="https://no.such.host.invalid", source="a test"), clock=clock) as client:
        with pytest.raises(Unreachable, match=r"no\.such\.host\.invalid \(from a test\)"):
            await client.server_version()


async def test_a_server_that_accepts_and_then_cuts_is_unreachable(client, server):
    async def respond(request):
        request.transport.abort()
        return server.plain({})

    server.respond = respond
    with pytest.raises(Unreachable, match="the connection was cut"):
        await client.bind("shop", "web", "u", "n1")


async def test_a_closed_client_reports_that(server, clock):
    client = ApiClient(server.connection(), clock=clock)
    await client.close()
    with pytest.raises(Unreachable, match="closed by this client"):
        await client.server_version()


@pytest.mark.parametrize("namespace", [".", ".."])
def test_a_namespace_of_dots_is_no_path(namespace: str):
    with pytest.raises(ValueError, match="cannot be the name of a namespace"):
        path_of(PODS, namespace, "web")
