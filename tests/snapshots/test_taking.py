"""Taking a snapshot of an embedded cluster: what is requested, what is kept, and what is left out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError, Fault
from mooring.client import ApiClient, Connection
from mooring.client.api import RawList
from mooring.client.own_rules import RULES_REVIEWS
from mooring.framework.definitions import definition_of
from mooring.objects import CustomResource, Node, Pod
from mooring.objects.meta import Kind
from mooring.simulated.cluster_file import parse_cluster, read_cluster_file
from mooring.snapshots import Header, LeftOut, Snapshot, Spool, read_snapshot, take_snapshot, write_snapshot
from mooring.snapshots.kinds import DEFINITION, SAVED

RICH = (Path(__file__).parent / "rich.yaml").read_text(encoding="utf-8")
SECRETS = ("hunter2", "vault", "s3cr3t")
"""Written in rich.yaml wherever something secret could be."""


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedApiServer]:
    server = EmbeddedApiServer(features=["GenericWorkload"])
    assert server.load(parse_cluster(RICH, "rich.yaml", now=1e9).in_order()) == []
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server: EmbeddedApiServer) -> AsyncIterator[ApiClient]:
    there = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(there) as client:
        yield client


async def taken(client: ApiClient, path: Path, **options: Any) -> Snapshot:
    with Spool() as spool:
        header: Header = await take_snapshot(client, spool, **options)
        write_snapshot(path, header, spool)
    return read_snapshot(path)


def refusing(client: ApiClient, codes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of these kinds fail with these codes."""
    list_page = client.list_page

    async def refused(kind: Kind, *args: Any, **options: Any) -> RawList:
        if kind.plural in codes:
            raise ApiError(codes[kind.plural], "Refused", f"{kind.plural} is refused")
        return await list_page(kind, *args, **options)

    monkeypatch.setattr(client, "list_page", refused)


async def test_every_kind_is_saved(client: ApiClient, tmp_path: Path):
    snapshot = await taken(client, tmp_path / "it")
    assert set(snapshot.header.counts) == {saved.kind.name for saved in SAVED} - {"replicasets.apps"}
    assert snapshot.header.objects == len(list(snapshot.documents()))
    assert snapshot.header.server_version == "v1.36.4+mooring"
    assert [node.name for node in snapshot.objects(Node)] == ["node-1", "node-2"]
    assert {type(each) for each in snapshot.objects(Node, Pod)} == {Node, Pod}


async def test_nothing_secret_is_saved(client: ApiClient, tmp_path: Path):
    snapshot = await taken(client, tmp_path / "it")
    text = str(list(snapshot.documents()))
    assert [word for word in (*SECRETS, "last-applied", "managedFields", "'env'") if word in text] == []


async def test_an_annotation_is_saved_where_the_user_names_it(client: ApiClient, tmp_path: Path):
    for pattern in ("example.com/reach", "example.com/*"):
        snapshot = await taken(client, tmp_path / "it", keep_annotations=[pattern])
        [pod] = snapshot.objects(Pod)
        assert pod.annotations == {"example.com/reach": "far"}
        assert snapshot.header.annotations == [pattern]


async def test_only_lists_of_the_saved_kinds_are_requested(client: ApiClient, tmp_path: Path, monkeypatch):
    requested = []
    request = client.transport.request

    async def observed(method: str, path: str, *args: Any, **options: Any) -> bytes:
        requested.append((method, path.partition("?")[0]))
        return await request(method, path, *args, **options)

    monkeypatch.setattr(client.transport, "request", observed)
    await taken(client, tmp_path / "it")
    assert {path for method, path in requested if method != "GET"} == {RULES_REVIEWS.path()}
    assert {path for method, path in requested if method == "GET"} == {
        "/version",
        *(saved.kind.path() for saved in SAVED),
    }
    assert not any("secrets" in path or "configmaps" in path for _, path in requested)


async def test_a_restored_snapshot_is_the_same_cluster(client: ApiClient, tmp_path: Path):
    first = await taken(client, tmp_path / "it")
    file = read_cluster_file(str(tmp_path / "it"), now=1e9)
    restored = EmbeddedApiServer(features=["GenericWorkload"])
    result = restored.restore(file.initial.restored, file.line_of)
    assert (file.problems, result.problems, list(result.sentences())) == ([], [], [])
    await restored.start()
    there = Connection(server=restored.url, source="it", ca_data=restored.ca_pem.encode(), token=restored.token)
    async with ApiClient(there) as other:
        second = await taken(other, tmp_path / "again")
    await restored.stop()
    assert without_marks(second) == without_marks(first)


def without_marks(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Its objects without the marks of templates, whose key is another in each snapshot."""
    documents = list(snapshot.documents())
    for document in documents:
        template = document.get("spec", {}).get("template", {})
        template.get("metadata", {}).pop("annotations", None)
        document["metadata"].pop("generation", None)
    return documents


async def test_a_kind_that_is_forbidden_or_absent_is_left_out_and_named(client: ApiClient, tmp_path: Path, monkeypatch):
    refusing(client, {"csinodes": 403, "resourceslices": 404}, monkeypatch)
    snapshot = await taken(client, tmp_path / "it")
    assert snapshot.header.left_out == [
        LeftOut("csinodes.storage.k8s.io", "forbidden"),
        LeftOut("resourceslices.resource.k8s.io", "not served"),
    ]
    assert "csinodes.storage.k8s.io" not in snapshot.header.counts
    assert len(list(snapshot.documents())) == snapshot.header.objects


def reviewed(client: ApiClient, status: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The account has these rules. Returns the plurals that are listed from now on."""
    create, list_page, listed = client.create, client.list_page, []

    async def rules(kind: Kind, *args: Any, **options: Any) -> Any:
        return {"status": status} if kind is RULES_REVIEWS else await create(kind, *args, **options)

    async def observed(kind: Kind, *args: Any, **options: Any) -> RawList:
        listed.append(kind.plural)
        return await list_page(kind, *args, **options)

    monkeypatch.setattr(client, "create", rules)
    monkeypatch.setattr(client, "list_page", observed)
    return listed


def a_rule(group: str, *resources: str, verbs: Sequence[str] = ("get", "list"), **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs), **more}


RULES: dict[str, tuple[list[dict[str, Any]], set[str]]] = {
    "by name": ([a_rule("", "services", "pods")], {"services"}),
    "everything of a group": ([a_rule("policy", "*", verbs=["*"])], {"poddisruptionbudgets"}),
    "a right that is not to list": ([a_rule("", "services", verbs=["get", "watch"])], set()),
    "of some objects only": ([a_rule("", "services", resourceNames=["web"])], set()),
    "of another group": ([a_rule("apps", "services")], set()),
    "none": ([], set()),
}


@pytest.mark.parametrize(("rules", "expected"), RULES.values(), ids=RULES.keys())
async def test_what_the_account_may_not_list_is_not_requested(
    client: ApiClient, tmp_path: Path, monkeypatch, rules: list[dict[str, Any]], expected: set[str]
):
    listed = reviewed(client, {"resourceRules": rules, "incomplete": False}, monkeypatch)
    snapshot = await taken(client, tmp_path / "it")
    assert set(listed) == {"nodes", "pods", *expected}
    assert {each.kind.partition(".")[0] for each in snapshot.header.left_out} == {
        saved.kind.plural for saved in SAVED
    } - {"nodes", "pods", *expected}
    assert {each.reason for each in snapshot.header.left_out} == {"forbidden"}


async def test_with_incomplete_rules_everything_is_requested(client: ApiClient, tmp_path: Path, monkeypatch):
    listed = reviewed(client, {"resourceRules": [], "incomplete": True}, monkeypatch)
    await taken(client, tmp_path / "it")
    assert set(listed) == {saved.kind.plural for saved in SAVED}


async def test_where_rules_cannot_be_reviewed_everything_is_requested(client: ApiClient, tmp_path: Path, monkeypatch):
    async def refused(*_: Any, **__: Any) -> Any:
        raise ApiError(403, "Forbidden", "no")

    monkeypatch.setattr(client, "create", refused)
    assert (await taken(client, tmp_path / "it")).header.left_out == []


@pytest.mark.parametrize("kind", ["nodes", "pods"])
async def test_without_nodes_or_pods_there_is_no_snapshot(client: ApiClient, tmp_path: Path, monkeypatch, kind: str):
    refusing(client, {kind: 403}, monkeypatch)
    with pytest.raises(Fault, match=f"a snapshot needs {kind}, which cannot be listed"):
        await taken(client, tmp_path / "it")
    assert os.listdir(tmp_path) == []


async def test_a_server_that_fails_is_no_kind_that_is_left_out(client: ApiClient, tmp_path: Path, monkeypatch):
    refusing(client, {"jobs": 500}, monkeypatch)
    with pytest.raises(Fault, match=r"jobs\.batch cannot be listed"):
        await taken(client, tmp_path / "it")


async def test_a_list_that_expires_is_taken_again_whole(client: ApiClient, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("mooring.snapshots.taking.PAGE", 1)
    list_page, limits = client.list_page, []

    async def expiring(kind: Kind, *args: Any, limit: int, token: str) -> RawList:
        if kind is Node.KIND:
            limits.append(limit)
            if token:
                raise ApiError(410, "Expired", "the list has expired")
        return await list_page(kind, *args, limit=limit, token=token)

    monkeypatch.setattr(client, "list_page", expiring)
    snapshot = await taken(client, tmp_path / "it")
    assert [node.name for node in snapshot.objects(Node)] == ["node-1", "node-2"]
    assert limits == [1, 1, 0]


async def test_progress_is_reported_page_by_page(client: ApiClient, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("mooring.snapshots.taking.PAGE", 1)
    seen: list[tuple[str, int]] = []
    on_page: Callable[[str, int], None] = lambda kind, count: seen.append((kind, count))  # noqa: E731
    await taken(client, tmp_path / "it", on_page=on_page)
    assert [each for each in seen if each[0] == "nodes"] == [("nodes", 1), ("nodes", 2)]


async def test_an_interrupted_snapshot_leaves_nothing(client: ApiClient, tmp_path: Path, monkeypatch):
    list_page = client.list_page

    async def interrupted(kind: Kind, *args: Any, **options: Any) -> RawList:
        if kind is Node.KIND:
            raise asyncio.CancelledError
        return await list_page(kind, *args, **options)

    monkeypatch.setattr(client, "list_page", interrupted)
    with pytest.raises(asyncio.CancelledError):
        await taken(client, tmp_path / "it")
    assert os.listdir(tmp_path) == []


def test_the_documented_role_is_what_is_requested():
    page = (Path(__file__).parents[2] / "docs/snapshots.md").read_text(encoding="utf-8")
    role = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    granted = {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if rule["verbs"] == ["list"]
    }
    assert granted == {(saved.kind.group, saved.kind.plural) for saved in SAVED}


class Rack(CustomResource, group="example.com", version="v1", plural="racks"):
    height: int = 0


async def with_racks(client: ApiClient, server: EmbeddedApiServer) -> None:
    definition = definition_of(Rack)
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": "H", "type": "integer", "jsonPath": ".height"}
    ]
    rack = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r1", "namespace": "default"}}
    await client.create(DEFINITION.kind, definition)
    await client.create(Rack.KIND, rack | {"height": 42}, "default")


@pytest.mark.parametrize("may_read_definitions", [True, False])
async def test_custom_kinds_of_plugins_and_their_definitions(
    client: ApiClient, server: EmbeddedApiServer, tmp_path: Path, monkeypatch, may_read_definitions: bool
):
    await with_racks(client, server)
    if not may_read_definitions:

        async def forbidden(*_: Any) -> None:
            raise ApiError(403, "Forbidden", "not allowed")

        monkeypatch.setattr(client, "get", forbidden)
    snapshot = await taken(client, tmp_path / "it", custom_kinds={Rack.KIND: definition_of(Rack)})
    [rack] = snapshot.objects(Rack)
    assert (rack.key, rack.height) == ("default/r1", 42)
    [definition] = [each for each in snapshot.documents() if each["kind"] == "CustomResourceDefinition"]
    has_column = "additionalPrinterColumns" in definition["spec"]["versions"][0]
    assert has_column == may_read_definitions, "the cluster's definition, or else that of the class"
    file = read_cluster_file(str(tmp_path / "it"), now=1e9)
    restored = EmbeddedApiServer(features=["GenericWorkload"]).restore(file.initial.restored, file.line_of)
    assert (file.problems, restored.problems, restored.unserved) == ([], [], {})


async def test_a_custom_kind_that_the_server_lacks_is_left_out(client: ApiClient, tmp_path: Path):
    snapshot = await taken(client, tmp_path / "it", custom_kinds={Rack.KIND: definition_of(Rack)})
    assert snapshot.header.left_out == [LeftOut("racks.example.com", "not served")]


async def test_secrets_are_not_requested_for_plugins_either(client: ApiClient, tmp_path: Path):
    secrets = Kind("", "v1", "Secret", "secrets")
    snapshot = await taken(client, tmp_path / "it", custom_kinds={secrets: {}})
    assert snapshot.header.left_out == [LeftOut("secrets", "never saved")]
