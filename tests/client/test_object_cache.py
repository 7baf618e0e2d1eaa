"""All objects of a kind, as a small client reads them."""

from __future__ import annotations

from tests.lists import list_into

from mooring.client import ObjectCache
from mooring.objects import Pod
from mooring.testing import a_pod


def a_cache() -> tuple[ObjectCache[Pod], list[str]]:
    added: list[str] = []
    return ObjectCache(lambda pod: added.append(pod.name)), added


def test_each_object_is_added_once():
    cache, added = a_cache()
    web = a_pod("web")
    cache.changed(web)
    cache.changed(web)
    list_into(cache, [web, a_pod("db")])
    assert added == ["web", "db"]


def test_what_a_new_list_lacks_is_gone():
    cache, _ = a_cache()
    web, db = a_pod("web"), a_pod("db")
    list_into(cache, [web, db])
    list_into(cache, [db])
    assert list(cache.all()) == [db]
    assert web not in cache
    cache.deleted(db)
    cache.deleted(db)
    assert not list(cache.all())


def test_another_object_of_the_same_name_is_a_new_one():
    cache, added = a_cache()
    first, second = a_pod("web", uid="first"), a_pod("web", uid="second")
    list_into(cache, [first])
    list_into(cache, [second])
    assert added == ["web", "web"]
    assert second in cache
    assert first not in cache
