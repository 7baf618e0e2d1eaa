"""What a pod of a gang costs depends neither on how large its gang is nor on how many gangs wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.scheduler.pod_groups.scene import GANGS, Scene, members, played

from mooring.framework import Pod, Refusal
from mooring.plugins.default.gang_scheduling import GangScheduling
from mooring.testing import a_node_object, a_pod_group

SIZES = {"two large gangs": (2, 40), "many small gangs": (40, 2)}


@contextmanager
def counted_admissions() -> Iterator[list[str]]:
    """The pods for which PreEnqueue of GangScheduling ran."""
    calls: list[str] = []
    original = GangScheduling.pre_enqueue

    def counting(plugin: GangScheduling, pod: Pod) -> Refusal | None:
        calls.append(pod.name)
        return original(plugin, pod)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GangScheduling, "pre_enqueue", counting)
        yield calls


@pytest.mark.parametrize(("gangs", "size"), SIZES.values(), ids=SIZES.keys())
def test_a_member_that_joins_does_not_have_all_others_tested_again(gangs: int, size: int):
    """G15, G16: the others are tested when the gang is complete."""

    async def story(scene: Scene) -> None:
        names = [f"gang-{number}" for number in range(gangs)]
        scene.add(a_node_object("a", cpu="100"), *(a_pod_group(name, min_count=size) for name in names))
        of_gangs = [members(size, group=name) for name in names]
        for one_of_each in zip(*of_gangs, strict=True):
            scene.add(*one_of_each)
        assert scene.gated() == []
        # When it comes; in the hint, for another one; and when the gang is complete, in the hint and by itself.
        assert len(calls) <= 4 * gangs * size
        await scene.run()
        assert len(scene.bound()) == gangs * size

    with counted_admissions() as calls:
        played(GANGS, story)
