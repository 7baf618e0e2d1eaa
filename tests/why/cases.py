"""Pods in every state that `mooring explain` and the page explain, each with its first line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.plugins.default.dynamic_resources.builders import a_claim, a_class, a_slice, allocated, devices, wants
from tests.why.clusters import owned

from mooring.framework import Pod
from mooring.objects import Node
from mooring.objects.core import PodResourceClaim, PodStatus
from mooring.objects.meta import KubeObject
from mooring.testing import a_node_object, a_pod
from mooring.testing.builders import a_taint
from mooring.testing.storage import claim_volume
from mooring.why.changes import with_spec

SERVED = ["default-scheduler"]
NODES = [a_node_object("one", cpu="4"), a_node_object("two", cpu="2", taints=[a_taint("gpu=true:NoSchedule")])]
REFUSAL: dict[str, Any] = {
    "time": "2026-01-01T00:00:00Z",
    "attempt": 1,
    "node": None,
    "nodes": 2,
    "message": "0/2 nodes are available: 2 node(s) are of another tier.",
    "rejections": [
        {
            "plugin": "Tiers",
            "reasons": ["node(s) are of another tier"],
            "code": "Unschedulable",
            "count": 2,
            "nodes": ["one", "two"],
        }
    ],
}
PLACED: dict[str, Any] = {
    "time": "2026-01-01T00:00:00Z",
    "attempt": 1,
    "node": "one",
    "nodes": 2,
    "evaluatedNodes": 2,
    "feasibleNodes": 1,
}


class Case(NamedTuple):
    pod: Pod
    first_line: str
    """Of `mooring explain`, behind the name of the pod."""
    cause: str
    """In the queue; "" for a pod that is not pending."""
    response: dict[str, Any] = {}
    """What a scheduler here knows of it."""
    pods: Sequence[Pod] = ()
    objects: Sequence[KubeObject] = ()
    nodes: Sequence[Node] = tuple(NODES)


def waits(reason: str, profile: str = "default-scheduler") -> str:
    return f"waits for a node (profile {profile}, Pending): {reason}."


def pending(pod: Pod, reason: str, **more: Any) -> Case:
    return Case(pod, waits(reason, pod.spec.scheduler_name), reason, **more)


def decided(pod: Pod, decision: dict[str, Any], queue: str, **more: Any) -> dict[str, Any]:
    return {"found": True, "decision": decision | {"uid": pod.uid, "pod": pod.key}, "queue": queue, **more}


BIG, REMOVED, HELD = a_pod("big", cpu="3"), a_pod("t9", scheduler="tiers"), a_pod("held", cpu="1")
HOLDER, RUN = a_pod("a", node="one", uid="uid-a"), a_pod("done", node="one")
ENDED = Pod(metadata=RUN.metadata, spec=RUN.spec, status=PodStatus(phase="Succeeded"))
PERMIT = {
    "plugin": "OfficeHours",
    "resource": "Permit",
    "actions": ["Allow"],
    "node": "one",
    "deadline": "2026-01-01T00:01:00Z",
    "secondsLeft": 60.0,
}

CASES: dict[str, Case] = {
    "too little cpu, and a taint": pending(
        BIG,
        "1 of 2 nodes has too little cpu, 1 has a taint that it does not tolerate",
        pods=[a_pod("web", cpu="3", node="one")],
    ),
    "a resource that no node has": pending(a_pod(requests={"example.com/gpu": "1"}), "no node has example.com/gpu"),
    "a label that no node has": pending(
        a_pod(node_selector={"disk": "ssd"}),
        "1 of 2 nodes lacks a label that its node selector or affinity requires, "
        "1 has a taint that it does not tolerate",
    ),
    "a claim that does not exist": pending(
        a_pod(volumes=[claim_volume("nosuch")]), 'persistentvolumeclaim "nosuch" not found'
    ),
    "a sibling in the way": pending(
        owned(a_pod("web-2", cpu="4"), "ReplicaSet", "web"),
        "1 of 2 nodes has too little cpu, 1 has a taint that it does not tolerate",
        pods=[owned(a_pod("web-1", cpu="4", node="one"), "ReplicaSet", "web")],
    ),
    "a scheduling gate": pending(
        a_pod(gates=["example.com/wait"]),
        "SchedulingGates keeps it out of the queue: waiting for scheduling gates: [example.com/wait]",
    ),
    "no nodes": pending(a_pod(), "the cluster has no nodes", nodes=()),
    "served by no scheduler": pending(
        a_pod(scheduler="absent"),
        'no scheduler here serves "absent"',
        response={"found": False, "profiles": SERVED, "gating": None},
    ),
    "refused by a profile that was removed": pending(
        REMOVED,
        'no scheduler here serves "tiers"',
        response=decided(REMOVED, REFUSAL, "absent", profiles=SERVED),
    ),
    "it fits, and waits for its turn": Case(
        a_pod("small"), "waits for a node (profile default-scheduler, Pending).", "it fits, and waits for its turn"
    ),
    "a pod of another scheduler, which is not here": Case(
        a_pod("theirs", scheduler="volcano"),
        "waits for a node (profile volcano, Pending).",
        'it fits by the rules of default-scheduler, and waits for its scheduler "volcano"',
    ),
    "waiting on permit": Case(
        HELD,
        "waits on permit of OfficeHours on one, 1m0s left (profile default-scheduler, Pending).",
        "it fits, and waits for its turn",
        response=decided(HELD, PLACED | {"waitsFor": [PERMIT]}, "waiting on permit", profiles=SERVED),
    ),
    "bound": Case(a_pod("runs", node="one"), "runs on one (profile default-scheduler, Running).", ""),
    "bound to a node that is gone": Case(
        a_pod("lost", node="three"), "is bound to three, which does not exist (profile default-scheduler, Running).", ""
    ),
    "ended": Case(ENDED, "runs on one (profile default-scheduler, Succeeded).", ""),
    "a device that another pod has": pending(
        with_spec(a_pod("b"), resource_claims=[PodResourceClaim(name="of-b", resource_claim_name="of-b")]),
        "cannot allocate all claims",
        pods=[HOLDER],
        objects=[
            a_class("gpu"),
            a_slice(*devices("gpu-0"), node="one"),
            a_claim("of-a", wants(), allocation=allocated("gpu-0", pool="one", on="one"), reserved_for=[HOLDER.uid]),
            a_claim("of-b", wants()),
        ],
        nodes=NODES[:1],
    ),
    "bound by a profile that was removed": Case(
        a_pod("old", scheduler="tiers", node="one"),
        "runs on one (profile tiers, Running).",
        "",
        response={"found": False, "profiles": SERVED, "gating": None},
    ),
}
