"""Claims and disks in use: counted as pods come and go, and in what-ifs as kube-scheduler counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.placed import placed
from mooring.objects.volumes import Disk
from mooring.state import State
from mooring.testing import a_node_object, a_pod
from mooring.testing.storage import claim_volume, ephemeral_volume

DISK = Disk("gcePersistentDisk", "disk")
MOUNT = {"gcePersistentDisk": {"pdName": "disk"}}


def a_state(*nodes: str) -> State:
    state = State()
    for name in nodes:
        state.set_node(a_node_object(name))
    return state


def a_user(*claims: str, node: str = "n1", namespace: str = "default", uid: str | None = None, disks: int = 0):
    volumes = [*map(claim_volume, claims), *[MOUNT] * disks]
    return placed(a_pod(namespace=namespace, uid=uid, volumes=volumes), node)


def mounted(state: State) -> list[str]:
    names, mask = state.nodes.names, state.nodes.where_disk_mounted([DISK])
    return [name for name, is_mounted in zip(names, mask, strict=True) if is_mounted]


def mounts(state: State) -> dict[str, int]:
    return dict(zip(state.nodes.names, state.nodes.volume_mounts.tolist(), strict=True))


def test_a_claim_counts_once_however_many_pods_use_it():
    state = a_state("n1", "n2")
    for pod in (a_user("a", uid="1"), a_user("a", node="n2", uid="2"), a_user("b", namespace="shop", uid="3")):
        state.set_pod(pod)
    assert state.claim_uses("default", ["a", "b"]) == 1
    assert state.claim_uses("shop", ["a", "b"]) == 1
    state.remove_pod("1")
    assert state.claim_uses("default", ["a"]) == 1
    state.remove_pod("2")
    assert state.claim_uses("default", ["a"]) == 0


def test_claims_made_for_a_pod_and_pods_on_unknown_nodes_do_not_count():
    state = a_state("n1")
    state.set_pod(placed(a_pod("web", volumes=[ephemeral_volume("v")]), "n1"))
    state.set_pod(a_user("a", node="unknown"))
    assert state.claim_uses("default", ["web-v", "a"]) == 0
    state.set_node(a_node_object("unknown"))
    assert state.claim_uses("default", ["a"]) == 1
    state.remove_node("unknown")
    assert state.claim_uses("default", ["a"]) == 0


def test_a_what_if_counts_each_volume_of_a_pod_by_the_claims_name():
    state = a_state("n1", "n2")
    first, second = a_user("a", "a", uid="1"), a_user("a", node="n2", uid="2")
    state.set_pod(first)
    state.set_pod(second)
    with state.what_if("n1", without=[first]):
        assert state.claim_uses("default", ["a"]) == -1
        with state.what_if("n2", adding=[a_user("a", namespace="shop", uid="3")]):
            assert state.claim_uses("default", ["a"]) == 0
    assert state.claim_uses("default", ["a"]) == 1


def test_disks_are_found_by_row_also_in_a_what_if():
    state = a_state("n1", "n2", "n3")
    first = a_user(uid="1", disks=2)
    state.set_pod(first)
    state.set_pod(a_user("a", node="n2", uid="2", disks=1))
    assert mounted(state) == ["n1", "n2"]
    assert mounts(state) == {"n1": 2, "n2": 2, "n3": 0}
    with state.what_if("n1", without=[first]):
        assert mounted(state) == ["n2"]
    assert mounted(state) == ["n1", "n2"]
    state.remove_pod("1")
    assert mounted(state) == ["n2"]
    assert mounts(state) == {"n1": 0, "n2": 2, "n3": 0}


def test_a_newer_record_with_other_volumes_counts_again():
    state = a_state("n1")
    state.set_pod(a_user("a", uid="1"))
    state.set_pod(a_user("b", uid="1", disks=1))
    assert state.claim_uses("default", ["a"]) == 0
    assert state.claim_uses("default", ["b"]) == 1
    assert mounted(state) == ["n1"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2"]), st.booleans()), max_size=12))
def test_whatever_comes_and_goes_the_counts_are_those_of_the_pods_there(steps):
    state = a_state("n1", "n2")
    there: dict[str, str] = {}
    for claim, node, comes in steps:
        uid = f"{claim}-{node}"
        if comes:
            state.set_pod(a_user(claim, node=node, uid=uid, disks=1))
            there[uid] = node
        elif there.pop(uid, None):
            state.remove_pod(uid)
    used = {uid[0] for uid in there}
    assert {claim for claim in "abc" if state.claim_uses("default", [claim])} == used
    assert set(mounted(state)) == set(there.values())
    assert mounts(state) == {node: 2 * list(there.values()).count(node) for node in ("n1", "n2")}
