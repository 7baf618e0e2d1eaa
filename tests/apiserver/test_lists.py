"""Lists: order, selection, pages, revisions."""

from __future__ import annotations

import pytest
from tests.apiserver.builders import a_config_map
from tests.apiserver.conftest import Client

from mooring.apiserver import storage

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def three(api: Client) -> Client:
    for name, labels in (("b", {"x": "1"}), ("a", {"x": "2"}), ("c", {})):
        await api.post(MAPS, a_config_map(name, labels=labels))
    return api


async def names(api: Client, path: str) -> list[str]:
    response = await api.get(path)
    assert response.code == 200, response.body
    return [item["metadata"]["name"] for item in response.body["items"]]


SELECTIONS = {
    "everything, by name": ("", ["a", "b", "c"]),
    "equality": ("labelSelector=x%3D1", ["b"]),
    "inequality holds for objects without the label": ("labelSelector=x!%3D1", ["a", "c"]),
    "sets": ("labelSelector=x%20in%20(1,2)", ["a", "b"]),
    "absence": ("labelSelector=!x", ["c"]),
    "a field": ("fieldSelector=metadata.name%3Da", ["a"]),
    "not a field": ("fieldSelector=metadata.name!%3Da", ["b", "c"]),
    "both": ("labelSelector=x&fieldSelector=metadata.name!%3Da", ["b"]),
}


@pytest.mark.parametrize(("query", "expected"), SELECTIONS.values(), ids=SELECTIONS.keys())
async def test_selection(three: Client, query: str, expected: list[str]):
    assert await names(three, f"{MAPS}?{query}") == expected


async def test_a_field_that_cannot_be_selected_is_a_bad_request(api: Client):
    response = await api.get("/api/v1/pods?fieldSelector=spec.foo%3Dx")
    assert (response.code, response.message) == (400, "field label not supported: spec.foo")


async def test_a_selector_that_cannot_be_read_is_a_bad_request(api: Client):
    assert (await api.get("/api/v1/pods?labelSelector=a%3Db%3Dc%20d")).code == 400


async def test_pages_continue_where_the_last_one_ended(three: Client):
    first = (await three.get(f"{MAPS}?limit=2")).body
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    rest = (await three.get(f"{MAPS}?limit=2&continue={first['metadata']['continue']}")).body
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert "continue" not in rest["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_what_a_selector_leaves_for_later_pages_is_not_counted(three: Client):
    page = (await three.get(f"{MAPS}?limit=1&fieldSelector=metadata.name!%3Db")).body
    assert "continue" in page["metadata"]
    assert "remainingItemCount" not in page["metadata"]


async def test_a_page_that_holds_all_there_is_has_no_next(three: Client):
    page = (await three.get(f"{MAPS}?limit=3")).body
    assert len(page["items"]) == 3
    assert "continue" not in page["metadata"]


async def test_a_forged_continue_token_is_a_bad_request(api: Client):
    assert (await api.get(f"{MAPS}?limit=1&continue=invalid")).code == 400


async def test_a_page_older_than_history_has_expired(three: Client, monkeypatch: pytest.MonkeyPatch):
    token = (await three.get(f"{MAPS}?limit=1")).body["metadata"]["continue"]
    monkeypatch.setattr(storage, "WATCH_CACHE_EVENTS", 0)
    await three.post(MAPS, a_config_map("d"))
    assert (await three.get(f"{MAPS}?limit=1&continue={token}")).code == 410


async def test_a_revision_from_the_future_is_a_timeout(api: Client):
    response = await api.get(f"{MAPS}?resourceVersion=999999")
    assert (response.code, response.body["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


async def test_a_list_names_its_kind_and_revision(three: Client):
    body = (await three.get("/api/v1/configmaps?resourceVersion=0")).body
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert body["metadata"]["resourceVersion"] == str(three.server.registry.store.revision)


async def test_a_collection_is_deleted_by_selection(three: Client):
    assert (await three.delete(f"{MAPS}?labelSelector=x")).code == 200
    assert await names(three, MAPS) == ["c"]


async def test_the_store_of_tests_follows_the_servers_rules(three: Client):
    store = three.server.store
    assert [each["metadata"]["name"] for each in store.list("configmaps", "default")] == ["a", "b", "c"]
    assert store.get("configmaps", "a") is not None
    assert store.get("configmaps", "z") is None
    with pytest.raises(KeyError, match="widgets is not served"):
        store.list("widgets")
