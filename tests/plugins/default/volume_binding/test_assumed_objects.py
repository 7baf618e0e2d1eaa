"""Assumed objects: what was decided holds until the watch shows something newer or it is taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.base.errors import Fault
from mooring.objects.storage import PersistentVolume
from mooring.plugins.default.volume_binding.assumed_objects import AssumedObjects
from mooring.plugins.default.volume_binding.matching import keys_of_volume
from mooring.testing.services import MemoryObjects
from mooring.testing.storage import a_claim, a_volume

CLAIM = a_claim()
FREE, KEPT = ("class", "wait"), ("claim", "default/data")


def a_version(version: str, name: str = "pv") -> PersistentVolume:
    volume = a_volume(name)
    force_setattr(volume.metadata, "resource_version", version)
    return volume


def assumed(*volumes: PersistentVolume) -> tuple[MemoryObjects, AssumedObjects[PersistentVolume]]:
    shown = MemoryObjects(volumes)
    return shown, AssumedObjects(shown)


def test_an_assumed_object_is_what_is_read():
    _, objects = assumed(a_version("1"))
    ours = a_version("1").claimed_by(CLAIM)
    objects.assume(ours)
    assert objects.get("pv") is ours
    assert objects.get("other") is None
    assert objects.shown.get("pv") is not ours


def test_it_is_found_under_the_keys_it_will_have():
    shown, objects = assumed(a_version("1"), a_version("1", "other"))
    index = objects.indexed(keys_of_volume)
    objects.assume(a_version("1").claimed_by(CLAIM))
    assert [volume.name for volume in index.at(FREE)] == ["other"]
    assert [volume.name for volume in index.at(KEPT)] == ["pv"]
    shown.put(a_version("2"))
    assert {volume.name for volume in index.at(FREE)} == {"pv", "other"}
    assert list(index.at(KEPT)) == []


@pytest.mark.parametrize("how", ["shown again", "taken back", "taken back twice", "gone"])
def test_an_assumption_ends(how):
    shown, objects = assumed(a_version("1"))
    ours = a_version("1").claimed_by(CLAIM)
    objects.assume(ours)
    if how == "shown again":
        shown.put(a_version("2"))
    elif how == "gone":
        shown.remove(ours)
    else:
        for _ in how.split()[1:]:
            objects.take_back(ours)
    assert objects.get("pv") is shown.get("pv")
    assert objects.assumed == {}


def test_the_same_version_shown_again_ends_nothing():
    shown, objects = assumed(a_version("1"))
    ours = a_version("1").claimed_by(CLAIM)
    objects.assume(ours)
    shown.put(a_version("1"))
    assert objects.get("pv") is ours


def test_what_was_written_is_not_taken_back():
    """Its version is newer than what was assumed: until the watch shows it, the assumption is right."""
    _, objects = assumed(a_version("1"))
    ours = a_version("1").claimed_by(CLAIM)
    objects.assume(ours)
    objects.take_back(a_version("2").claimed_by(CLAIM))
    assert objects.get("pv") is ours


def test_only_what_is_shown_can_be_assumed():
    _, objects = assumed(a_version("2"))
    with pytest.raises(Fault, match=r'"pv" is out of sync \(stored: 2, assume: 1\)'):
        objects.assume(a_version("1"))
    with pytest.raises(Fault, match='persistentvolumes "other" not found'):
        objects.assume(a_version("1", "other"))


def test_what_the_watch_has_overtaken_is_forgotten():
    """It may never be read again; it must not be kept for ever."""
    shown, objects = assumed(a_version("1"), a_version("1", "other"))
    objects.assume(a_version("1").claimed_by(CLAIM))
    shown.put(a_version("2"))
    objects.assume(a_version("1", "other").claimed_by(CLAIM))
    assert set(objects._assumed) == {"other"}


NAMES = ("a", "b", "c")
STEPS = st.lists(
    st.tuples(st.sampled_from(["show", "remove", "assume", "take back", "write"]), st.sampled_from(NAMES)), max_size=30
)


@given(STEPS)
def test_what_is_read_is_always_what_is_shown_with_the_valid_assumptions_over_it(steps):
    shown, objects = assumed()
    index = objects.indexed(keys_of_volume)
    expected: dict[str, PersistentVolume] = {}
    """What was assumed, by name, as long as its version is the one shown."""
    for version, (step, name) in enumerate(steps, 1):
        there = shown.get(name)
        if step == "show":
            shown.put(a_version(str(version), name))
            expected.pop(name, None)
        elif step == "write":  # by another, with a claim
            shown.put(a_version(str(version), name).claimed_by(CLAIM))
            expected.pop(name, None)
        elif there is None:
            continue
        elif step == "remove":
            shown.remove(there)
            expected.pop(name, None)
        elif step == "assume":
            expected[name] = there.claimed_by(CLAIM)
            objects.assume(expected[name])
        elif name in expected:
            objects.take_back(expected.pop(name))
        now = {each: expected.get(each) or shown.get(each) for each in NAMES}
        assert {each: objects.get(each) for each in NAMES} == now
        for key in (FREE, KEPT):
            found = [volume for volume in now.values() if volume is not None and key in keys_of_volume(volume)]
            assert sorted(volume.name for volume in index.at(key)) == sorted(volume.name for volume in found)
        assert objects.assumed == expected
