"""VolumeBinding after a node is chosen: what is assumed, written, waited for, and why waiting ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.volume_plugins import verdict_of

from mooring.base.errors import ApiError, Fault
from mooring.framework import Pod
from mooring.objects import KubeObject
from mooring.objects.migration import ZONE
from mooring.objects.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from mooring.plugins.default.volume_binding import VolumeBinding
from mooring.plugins.default.volume_binding.search import BIND_CONFLICT
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_node_object, a_plugin, a_pod
from mooring.testing.storage import a_claim, a_storage_class, a_volume, claim_volume

LOCAL = a_storage_class("local", provisioner=NO_PROVISIONER)
FAST = a_storage_class("fast")
POD = a_pod(uid="me", volumes=[claim_volume("data")])
OTHER = a_pod("other", uid="other", volumes=[claim_volume("more")])
HERE, THERE = {ZONE: ["here"]}, {ZONE: ["there"]}


def versioned(item: Any, version: str = "1") -> Any:
    force_setattr(item.metadata, "resource_version", version)
    return item


class Attempt:
    """A pod that was decided to go to a node, from reserve on."""

    def __init__(self, *objects: KubeObject, pod: Pod = POD, **arguments: Any) -> None:
        self.services = Services()
        for item in objects:
            self.services.objects(type(item)).put(versioned(item))
        self.pod = pod
        self.plugin = a_plugin(VolumeBinding, self.services, **arguments)
        self.cluster = a_cluster(a_node(labels={ZONE: "here"}), services=self.services)
        self.node = self.cluster.node("node")
        self.cycle = a_cycle(pod, self.cluster)
        self.written = self.services.volume_writer.written
        self._steps = 100
        self.cluster.state.assume(pod, "node", 0.0)

    def reserve(self) -> None:
        assert self.plugin.reserve(self.pod, self.node, self.cycle) is None

    def unreserve(self) -> None:
        self.plugin.unreserve(self.pod, self.node, self.cycle)

    def needs_pre_bind(self) -> bool:
        return self.plugin.needs_pre_bind(self.pod, self.node, self.cycle)

    def show(self, item: Any) -> None:
        """The watch shows this; newer than anything before."""
        self._steps += 1
        self.services.objects(type(item)).put(versioned(item, str(2_000_000 + self._steps)))

    @property
    def volume(self) -> PersistentVolume:
        found: PersistentVolume | None = self.services.objects(PersistentVolume).get("pv")
        assert found is not None
        return found

    def begin(self) -> asyncio.Task[Any]:
        self.reserve()
        return asyncio.ensure_future(self.plugin.pre_bind(self.pod, self.node, self.cycle))

    async def pass_second(self) -> None:
        await settled()
        self.services.clock.advance(1.0)
        await settled()


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def static(**arguments: Any) -> Attempt:
    return Attempt(LOCAL, a_claim(storage_class="local"), a_volume("pv", storage_class="local", on=HERE), **arguments)


def dynamic(**arguments: Any) -> Attempt:
    return Attempt(FAST, a_claim(storage_class="fast"), **arguments)


def a_bound(**changes: Any) -> PersistentVolumeClaim:
    return a_claim(**{"storage_class": "fast", "volume": "pv", "selected_node": "node"} | changes)


async def test_a_volume_is_claimed_and_the_claim_waited_for():
    attempt = static()
    binding = attempt.begin()
    assert attempt.needs_pre_bind()
    await attempt.pass_second()
    assert attempt.written == [("pv", "default/data")]
    volume = attempt.volume
    ref = volume.spec.claim_ref
    assert ref is not None
    assert (ref.kind, ref.api_version, ref.uid) == ("PersistentVolumeClaim", "v1", "claim-default-data")
    assert volume.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert not binding.done()
    attempt.show(a_claim(storage_class="local", volume="pv"))
    await attempt.pass_second()
    assert await binding is None


async def test_a_volume_that_a_user_prebound_to_the_claim_gets_its_uid():
    kept = a_volume("pv", storage_class="local", claim="default/data")
    attempt = Attempt(LOCAL, a_claim(storage_class="local"), kept)
    binding = attempt.begin()
    await settled()
    volume = attempt.volume
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == "claim-default-data"
    assert volume.metadata.annotations == {}  # set by a user, not by the scheduler
    binding.cancel()


async def test_a_node_is_selected_and_the_new_volume_waited_for():
    attempt = dynamic()
    binding = attempt.begin()
    await attempt.pass_second()
    assert attempt.written == [("default/data", "node")]
    attempt.show(a_bound(bound=False, volume=""))
    await attempt.pass_second()
    attempt.show(a_bound(bound=False))
    await attempt.pass_second()
    attempt.show(a_bound())
    await attempt.pass_second()
    assert not binding.done()  # the volume is not shown yet
    attempt.show(a_volume("pv", on=HERE))
    await attempt.pass_second()
    assert await binding is None


async def test_pods_without_unbound_claims_cost_nothing():
    attempt = Attempt(a_claim(volume="pv"), a_volume("pv"))
    attempt.reserve()
    assert not attempt.needs_pre_bind()
    assert await attempt.plugin.pre_bind(attempt.pod, attempt.node, attempt.cycle) is None
    attempt.unreserve()
    nothing = Attempt(pod=a_pod(volumes=[{"emptyDir": {}}]))
    nothing.reserve()
    assert not nothing.needs_pre_bind()
    nothing.unreserve()
    assert attempt.written == nothing.written == []


def test_the_next_pod_does_not_get_the_volume_until_it_is_given_back():
    attempt = static()
    attempt.services.objects(PersistentVolumeClaim).put(versioned(a_claim("more", storage_class="local")))
    node = a_node(labels={ZONE: "here"})
    assert verdict_of(attempt.plugin, OTHER, node) is None
    attempt.reserve()
    refused = verdict_of(attempt.plugin, OTHER, node)
    assert isinstance(refused, tuple)
    assert refused[1] == (BIND_CONFLICT,)
    attempt.unreserve()
    attempt.unreserve()
    assert verdict_of(attempt.plugin, OTHER, node) is None
    assert attempt.written == []


def test_a_second_pod_of_the_claim_follows_the_first():
    attempt = dynamic()
    attempt.reserve()
    second = a_pod("second", uid="second", volumes=[claim_volume("data")])
    assert verdict_of(attempt.plugin, second, a_node("elsewhere")) is not None
    assert verdict_of(attempt.plugin, second, a_node()) is None
    attempt.unreserve()
    assert verdict_of(attempt.plugin, second, a_node("elsewhere")) is None


def test_nothing_is_assumed_if_not_everything_can_be():
    two = a_pod(uid="me", volumes=[claim_volume("data"), claim_volume("more")])
    attempt = Attempt(
        LOCAL,
        FAST,
        a_claim(storage_class="local"),
        a_claim("more", storage_class="fast"),
        a_volume("pv", storage_class="local"),
        pod=two,
    )
    attempt.cycle.filter_state(attempt.plugin)
    attempt.show(a_claim("more", storage_class="fast"))  # while the pod was being decided
    with pytest.raises(Fault, match=r'"default/more" is out of sync \(stored: 2000101, assume: 1\)'):
        attempt.reserve()
    assert not attempt.plugin._binder._volumes.assumed
    assert not attempt.plugin._binder._claims.assumed


async def test_a_write_that_is_refused_leaves_the_rest_undone():
    attempt = static()
    conflict = ApiError(409, "Conflict", "the object has been modified")
    attempt.services.volume_writer.failures["pv"] = conflict
    binding = attempt.begin()
    with pytest.raises(ApiError, match="the object has been modified"):
        await binding
    attempt.unreserve()
    assert not attempt.plugin._binder._volumes.assumed


async def test_what_was_written_before_a_write_was_refused_stays_assumed_until_it_is_shown():
    two = a_pod(uid="me", volumes=[claim_volume("data"), claim_volume("more")])
    claims = [a_claim(storage_class="fast"), a_claim("more", storage_class="fast")]
    attempt = Attempt(FAST, *claims, pod=two)
    attempt.services.volume_writer.is_shown = False
    attempt.services.volume_writer.failures["default/more"] = Fault("no response")
    with pytest.raises(Fault, match="no response"):
        await attempt.begin()
    attempt.unreserve()
    assert set(attempt.plugin._binder._claims.assumed) == {"default/data"}
    attempt.show(a_claim(storage_class="fast", selected_node="node"))
    assert not attempt.plugin._binder._claims.assumed


def gone(name: str) -> Callable[[Attempt], None]:
    def remove(attempt: Attempt) -> None:
        kind = PersistentVolume if name == "pv" else PersistentVolumeClaim
        attempt.services.objects(kind).discard(name)

    return remove


def shown(item: Callable[[], KubeObject]) -> Callable[[Attempt], None]:
    return lambda attempt: attempt.show(item())


def node_relabelled(attempt: Attempt) -> None:
    attempt.cluster.state.set_node(a_node_object("node", labels={ZONE: "there"}))


def node_gone(attempt: Attempt) -> None:
    attempt.cluster.state.remove_node("node")


def pod_gone(attempt: Attempt) -> None:
    attempt.cluster.state.forget("me")


def claimed(**changes: Any) -> PersistentVolume:
    changes = {"storage_class": "local", "claim": "default/data", "claim_uid": "claim-default-data"} | changes
    return a_volume("pv", **changes)


def made_elsewhere(attempt: Attempt) -> None:
    attempt.show(a_bound())
    attempt.show(a_volume("pv", on=THERE))


NOT_HERE = 'pv "pv" node affinity doesn\'t match node "node": no matching NodeSelectorTerms'
ENDS = {
    "the node is gone": (static, node_gone, 'failed to get node "node": node "node" not found'),
    "the pod is gone": (static, pod_gone, 'pod does not exist any more: pod "pod" not found'),
    "the volume is gone": (static, gone("pv"), 'failed to check binding: persistentvolumes "pv" not found'),
    "its claim is gone": (
        static,
        gone("default/data"),
        'failed to check binding: persistentvolumeclaims "default/data" not found',
    ),
    "the node changed its zone": (static, node_relabelled, NOT_HERE),
    "the volume's affinity changed": (static, shown(lambda: claimed(on=THERE)), NOT_HERE),
    "the volume was given up": (static, shown(lambda: claimed(claim=None)), 'ClaimRef got reset for pv "pv"'),
    "the volume is kept for a name again": (
        static,
        shown(lambda: claimed(claim_uid="")),
        'ClaimRef got reset for pv "pv"',
    ),
    "the claim is gone": (
        dynamic,
        gone("default/data"),
        'failed to check provisioning pvc: persistentvolumeclaims "default/data" not found',
    ),
    "the provisioner gave up": (
        dynamic,
        shown(lambda: a_claim(storage_class="fast", annotations={"a": "b"})),
        'provisioning failed for PVC "data"',
    ),
    "the provisioner gave up, and there was no other annotation": (
        dynamic,
        shown(lambda: a_claim(storage_class="fast")),
        'selectedNode annotation reset for PVC "data"',
    ),
    "another node was selected": (
        dynamic,
        shown(lambda: a_claim(storage_class="fast", selected_node="other")),
        'provisioning failed for PVC "data"',
    ),
    "the volume was made elsewhere": (
        dynamic,
        made_elsewhere,
        NOT_HERE,
    ),
}


@pytest.mark.parametrize(("begun", "happens", "problem"), ENDS.values(), ids=ENDS.keys())
async def test_waiting_ends_when_it_is_of_no_use(begun, happens, problem):
    attempt = begun()
    binding = attempt.begin()
    await attempt.pass_second()
    assert not binding.done()
    happens(attempt)
    await attempt.pass_second()
    with pytest.raises(Fault) as raised:
        await binding
    assert str(raised.value) == f"binding volumes: {problem}"


@pytest.mark.parametrize("begun", [static, dynamic])
async def test_what_the_watch_delivers_from_before_the_write_is_ignored(begun):
    attempt = begun()
    attempt.services.volume_writer.is_shown = False
    binding = attempt.begin()
    await attempt.pass_second()
    await attempt.pass_second()
    assert not binding.done()  # neither claimRef nor annotation is there, and that is no failure
    binding.cancel()


@pytest.mark.parametrize("seconds", [0, 5])
async def test_waiting_ends_when_the_time_is_up(seconds):
    attempt = dynamic(bind_timeout_seconds=seconds)
    binding = attempt.begin()
    for _ in range(seconds):
        assert not binding.done()
        await attempt.pass_second()
    with pytest.raises(Fault, match=r"^binding volumes: context deadline exceeded$"):
        await binding


async def test_without_its_reserve_it_does_not_pretend():
    attempt = dynamic()
    with pytest.raises(Fault, match='no pod volume found for node "node"'):
        attempt.needs_pre_bind()
    with pytest.raises(Fault, match='no pod volume found for node "node"'):
        await attempt.plugin.pre_bind(attempt.pod, attempt.node, attempt.cycle)


def test_the_annotations_are_those_of_kubernetes():
    assert (SELECTED_NODE, BIND_COMPLETED) == ("volume.kubernetes.io/selected-node", "pv.kubernetes.io/bind-completed")
