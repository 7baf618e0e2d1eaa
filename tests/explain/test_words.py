"""The output of `mooring explain`: whole texts, because a reader sees whole texts."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from mooring.explain import in_full, in_one_line


def a_placed_decision(**more: Any) -> dict[str, Any]:
    return {
        "uid": "u1",
        "time": "2026-01-01T12:00:00Z",
        "attempt": 1,
        "node": "node-2",
        "nodes": 3,
        "evaluatedNodes": 3,
        "feasibleNodes": 2,
        "total": 260,
        "scores": [
            {"plugin": "NodeResourcesFit", "raw": 60, "normalized": 60, "weight": 1, "weighted": 60},
            {"plugin": "ScoreByLabel", "raw": 1200, "normalized": 100, "weight": 2, "weighted": 200},
        ],
    } | more


def a_refusal(**more: Any) -> dict[str, Any]:
    return {
        "uid": "u1",
        "time": "2026-01-01T12:00:00Z",
        "attempt": 2,
        "node": None,
        "nodes": 9,
        "evaluatedNodes": 9,
        "feasibleNodes": 0,
        "message": "0/9 nodes are available: 1 node(s) had no widget, 8 Insufficient cpu.",
        "rejections": [
            {
                "plugin": "NodeResourcesFit",
                "reasons": ["Insufficient cpu"],
                "code": "Unschedulable",
                "count": 8,
                "nodes": [f"node-{number}" for number in range(1, 9)],
            },
            {
                "plugin": "NeedsWidgets",
                "reasons": ["node(s) had no widget"],
                "code": "UnschedulableAndUnresolvable",
                "count": 1,
                "nodes": ["node-9"],
            },
        ],
        "waitsFor": [
            {"plugin": "NodeResourcesFit", "resource": "Node", "actions": ["Add", "UpdateNodeAllocatable"]},
            {"plugin": "NodeResourcesFit", "resource": "Pod", "actions": ["Delete"]},
        ],
    } | more


def explained(decision: dict[str, Any] | None, **more: Any) -> str:
    found = {"pod": "shop/web", "profile": "default-scheduler", "node": None, "phase": "Pending", "decision": decision}
    return in_full(found | more) + "\n"


def test_a_pod_that_waited_shows_why_and_what_woke_it():
    earlier = {
        "time": "2026-01-01T11:58:20Z",
        "lastTime": "2026-01-01T11:59:00Z",
        "attempts": 3,
        "message": "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available.",
        "startedBy": {"NodeUpdate": 1, "AssignedPodDelete": 2},
    }
    decision = a_placed_decision(attempt=4, startedBy="NodeAdd", earlier=[earlier])
    text = explained(decision, node="node-2", phase="Running", queue="absent")
    assert text.startswith(
        "Pod shop/web runs on node-2 (profile default-scheduler, Running); it waited 1m40s for it: "
        "0/3 nodes are available: 3 Insufficient cpu.\n"
    )
    assert "Last decision: attempt 4 at 2026-01-01T12:00:00Z, after NodeAdd.\n" in text
    assert (
        "  2026-01-01T11:58:20Z to 2026-01-01T11:59:00Z after NodeUpdate, AssignedPodDelete (2)  3 times: 0/3" in text
    )


def test_a_placed_pod_shows_its_scores():
    assert explained(a_placed_decision(bound=True), node="node-2", phase="Running", queue="absent") == dedent("""\
        Pod shop/web runs on node-2 (profile default-scheduler, Running).

        Last decision: attempt 1 at 2026-01-01T12:00:00Z.
          node-2 was chosen: 2 of 3 nodes were feasible (3 looked at).

          PLUGIN                     RAW  OF 100  WEIGHT   SCORE
          NodeResourcesFit            60      60       1      60
          ScoreByLabel              1200     100       2     200
          total                                              260
        """)


def test_a_single_feasible_node_was_not_scored():
    decision = a_placed_decision(feasibleNodes=1, scores=[], total=0)
    decision["rejections"] = a_refusal()["rejections"][1:]
    assert explained(decision, node="node-2", phase="Running") == dedent("""\
        Pod shop/web runs on node-2 (profile default-scheduler, Running).

        Last decision: attempt 1 at 2026-01-01T12:00:00Z.
          node-2 was chosen: 1 of 3 nodes was feasible (3 looked at).
          A single feasible node is taken without scoring.

          Nodes that were not feasible:
          NeedsWidgets: node(s) had no widget
              1 node: node-9
        """)


def test_a_refused_pod_shows_who_refused_which_nodes_and_what_it_waits_for():
    assert explained(a_refusal(), queue="unschedulable") == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending): 8 of 9 nodes have too little cpu.

        Last decision: attempt 2 at 2026-01-01T12:00:00Z.
          0/9 nodes are available: 1 node(s) had no widget, 8 Insufficient cpu.

          NodeResourcesFit: Insufficient cpu
              8 nodes: node-1, node-2, node-3, node-4, node-5 and 3 more
          NeedsWidgets: node(s) had no widget
              1 node: node-9

          It is tried again when one of these happens:
            Node: Add, UpdateNodeAllocatable   (registered by NodeResourcesFit)
            Pod: Delete   (registered by NodeResourcesFit)

        In the queue it is unschedulable: it is tried again when one of the events above happens, or after five minutes.
        """)


def test_a_pod_that_no_event_requeues_waits_for_time_alone():
    assert "no cluster event requeues it" in explained(
        a_placed_decision(node=None, message="slow"), queue="unschedulable"
    )


def test_a_pod_refused_after_a_node_was_chosen_names_the_plugin():
    refused = a_placed_decision(node=None, message="0/1 nodes are available: 1 no quota left.", refusedBy=["Quota"])
    refused["rejections"] = a_refusal()["rejections"][1:]
    assert explained(refused, queue="backoff") == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending): a node was chosen, and Quota rejected it.

        Last decision: attempt 1 at 2026-01-01T12:00:00Z.
          0/1 nodes are available: 1 no quota left.
          Rejected by Quota.

          Nodes that were not feasible:
          NeedsWidgets: node(s) had no widget
              1 node: node-9

        In the queue it is backoff: it is tried again when its backoff ends, or earlier if nothing else is to do.
        """)


def test_a_pod_that_could_not_be_bound_shows_the_reason():
    assert explained(a_placed_decision(node=None, error="the disk is gone"), queue="active") == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending).

        Last decision: attempt 1 at 2026-01-01T12:00:00Z.
          It was not bound: the disk is gone

        In the queue it is active: it is tried as soon as the scheduler gets to it.
        """)


def test_reasons_that_were_left_out_are_counted():
    assert "  … and 12 more reasons\n" in explained(a_refusal(rejectionsLeftOut=12))


def test_a_rejection_without_a_plugin_came_from_pre_filter():
    group = {"plugin": "", "reasons": [], "code": "Unschedulable", "count": 1, "nodes": ["node-1"]}
    assert "  pre_filter: Unschedulable\n      1 node: node-1\n" in explained(a_refusal(rejections=[group]))


def test_a_scheduler_without_a_decision_in_memory():
    condition = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
    assert explained(None, condition=condition, servedProfiles=["default-scheduler", "a"]) == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending).
          SchedulingGated: Scheduling is blocked due to non-empty scheduling gates

        The scheduler here serves a, default-scheduler and has no decision about this pod in memory.
        """)


def test_a_gated_pod_names_who_keeps_it_out():
    gating = {"uid": "u", "plugin": "SchedulingGates", "reasons": ["waits for [later]"]}
    condition = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
    assert explained(None, condition=condition, gating=gating).splitlines() == [
        "Pod shop/web waits for a node (profile default-scheduler, Pending): "
        "SchedulingGates keeps it out of the queue: waits for [later].",
        "  SchedulingGated: Scheduling is blocked due to non-empty scheduling gates",
    ]


def test_without_a_scheduler_that_is_reported():
    assert explained(None, phase="") == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending).

        No Mooring scheduler of yours runs on this machine for that API server, so this is all that is known.
        """)


LINES = {
    "scores": (
        a_placed_decision(),
        "score 260 (NodeResourcesFit 60, ScoreByLabel 200); 2 of 3 nodes feasible",
    ),
    "a single node": (a_placed_decision(scores=[], feasibleNodes=1), "the only feasible node"),
    "nothing scored": (a_placed_decision(scores=[]), "2 of 3 nodes feasible"),
    "refused": (a_refusal(), "0/9 nodes are available: 1 node(s) had no widget, 8 Insufficient cpu."),
    "not bound": (a_placed_decision(node=None, error="the disk is gone"), "the disk is gone"),
    "nothing at all": ({}, "not decided"),
}


@pytest.mark.parametrize(("decision", "line"), LINES.values(), ids=LINES.keys())
def test_in_one_line(decision, line):
    assert in_one_line(decision) == line


def test_a_pod_that_room_is_made_for_shows_who_must_go_and_what_else_was_weighed():
    plan = {
        "nominate": "node-2",
        "evict": ["shop/low-1", "shop/low-2"],
        "candidateCount": 3,
        "candidates": [
            {"node": "node-1", "victims": ["shop/db-0"], "budgetViolations": 1},
            {"node": "node-2", "victims": ["shop/low-1", "shop/low-2"], "budgetViolations": 0},
        ],
    }
    assert explained(a_refusal(plan=plan, rejections=[], waitsFor=[])) == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending).

        Last decision: attempt 2 at 2026-01-01T12:00:00Z.
          0/9 nodes are available: 1 node(s) had no widget, 8 Insufficient cpu.

          To make room, 2 pods of lower priority must go; node-2 is kept for it:
            shop/low-1
            shop/low-2
          It was the best of 3 nodes; others were:
            node-1: shop/db-0; a disruption budget protects 1 of them
        """)


def test_a_pod_that_preemption_cannot_help_shows_what_was_tried():
    groups = [
        {"reasons": ["Insufficient cpu"], "count": 7, "nodes": [f"node-{number}" for number in range(1, 8)]},
        {"reasons": ["No preemption victims found for incoming pod"], "count": 1, "nodes": ["node-8"]},
    ]
    assert explained(a_refusal(noRoom=groups, rejections=[], waitsFor=[])) == dedent("""\
        Pod shop/web waits for a node (profile default-scheduler, Pending).

        Last decision: attempt 2 at 2026-01-01T12:00:00Z.
          0/9 nodes are available: 1 node(s) had no widget, 8 Insufficient cpu.

          Evicting pods of lower priority would not help:
            Insufficient cpu
              7 nodes: node-1, node-2, node-3, node-4, node-5 and 2 more
            No preemption victims found for incoming pod
              1 node: node-8
        """)


def test_the_same_reason_is_distinguished_by_whether_eviction_helps():
    group = {"plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"], "count": 1}
    groups = [
        group | {"code": "Unschedulable", "nodes": ["big"]},
        group | {"code": "UnschedulableAndUnresolvable", "nodes": ["small"]},
    ]
    text = explained(a_refusal(rejections=groups, waitsFor=[]))
    assert "  NodeResourcesFit: Insufficient cpu\n      1 node: big\n" in text
    assert "  NodeResourcesFit: Insufficient cpu, even with all pods there evicted\n      1 node: small\n" in text


def test_an_event_that_no_plugin_registered_is_not_shown_as_registered():
    waits = [
        {"plugin": "Mine", "resource": "Node", "actions": ["Add"]},
        {"plugin": "Mine", "resource": "Node", "actions": ["UpdateNodeTaint"], "follows": "NodeAdd"},
    ]
    text = explained(a_refusal(rejections=[], waitsFor=waits))
    assert "    Node: Add   (registered by Mine)\n" in text
    assert "Node: UpdateNodeTaint   (follows from NodeAdd of Mine: a new node often arrives with a taint)" in text


def test_a_pod_that_waits_for_a_kind_names_the_kind():
    waits = a_refusal(rejections=[], waitsFor=[], waitsForKinds=["racks.v1.example.com"])
    text = explained(waits, queue="unschedulable")
    assert "it is tried again when racks.v1.example.com can be listed, or after five minutes" in text


def test_a_pod_that_is_being_bound_is_not_in_the_queue():
    text = explained(a_placed_decision(), queue="binding")
    assert text.startswith("Pod shop/web is being bound to node-2 ")
    assert text.endswith("It has left the queue and is being bound.\n")


def test_a_scheduler_name_that_is_not_served_is_named_with_the_nearest_one():
    text = explained(None, profile="defalt-scheduler", servedProfiles=["default-scheduler", "batch"])
    assert 'No scheduler here serves "defalt-scheduler"; the one that runs serves batch, default-scheduler.' in text
    assert 'Did you mean "default-scheduler"?' in text


def test_sentences_of_plugins_follow_the_first_line():
    found = {
        "pod": "default/web",
        "profile": "default-scheduler",
        "node": None,
        "phase": "Pending",
        "gating": {"plugin": "Groups", "reasons": ["too few members"]},
        "plugins": [{"plugin": "Groups", "sentences": ["group default/train: 3 of 4 members exist"]}],
        "recomputed": None,
    }
    assert in_full(found).splitlines()[:2] == [
        "Pod default/web waits for a node (profile default-scheduler, Pending): "
        "Groups keeps it out of the queue: too few members.",
        "  Groups: group default/train: 3 of 4 members exist.",
    ]
