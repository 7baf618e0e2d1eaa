"""A cache is bounded by weight: one heavy entry counts as many light ones."""

from __future__ import annotations

from mooring.base.bounded import BoundedCache


def test_the_least_recently_used_makes_room():
    cache: BoundedCache[str, int] = BoundedCache(3)
    for key in "abc":
        cache.put(key, ord(key), 1)
    cache.get("a")
    cache.put("d", 4, 1)
    assert [key for key in "abcd" if cache.get(key) is not None] == ["a", "c", "d"]


def test_a_heavy_entry_displaces_several_light_ones():
    cache: BoundedCache[str, int] = BoundedCache(10)
    for key in "abcdefghij":
        cache.put(key, 1, 1)
    cache.put("heavy", 2, 8)
    assert (len(cache), cache.weight) == (3, 10)


def test_what_is_heavier_than_the_bound_is_not_kept():
    cache: BoundedCache[str, int] = BoundedCache(10)
    cache.put("light", 1, 1)
    assert cache.put("heavy", 2, 11) == 2
    assert cache.get("heavy") is None
    assert cache.get("light") == 1


def test_a_newer_value_replaces_the_weight_of_the_older():
    cache: BoundedCache[str, int] = BoundedCache(10)
    cache.put("a", 1, 9)
    cache.put("a", 2, 3)
    assert (cache.get("a"), cache.weight) == (2, 3)


def test_what_is_not_wanted_any_more_goes():
    cache: BoundedCache[str, int] = BoundedCache(10)
    cache.put("a", 1, 4)
    cache.put("b", 2, 4)
    cache.keep(lambda value: value == 2)
    assert (cache.get("a"), cache.get("b"), cache.weight) == (None, 2, 4)
