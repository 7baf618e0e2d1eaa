"""A recomputation in words: beside what a scheduler recorded, or alone."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from mooring.explain import in_full, owner_in_full, why_not_in_full

SCORES = [{"plugin": "Fit", "raw": 60, "normalized": 60, "weight": 1, "weighted": 60}]


def a_row(node: str, total: int) -> dict[str, Any]:
    return {
        "node": node,
        "total": total,
        "scores": [{**SCORES[0], "raw": total, "normalized": total, "weighted": total}],
    }


def bound(**more: Any) -> str:
    decision = {"node": "one", "nodes": 3, "feasibleNodes": 2, "total": 60, "scores": SCORES}
    recomputed = {"profile": "default-scheduler", "decision": decision} | more
    found = {"pod": "shop/web", "profile": "default-scheduler", "node": "one", "phase": "Running", "isFile": True}
    return in_full(found | {"recomputed": recomputed})


def test_a_bound_pod_with_its_runner_up_and_what_came_since():
    table = {
        "plugins": [{"plugin": "Fit", "weight": 1}],
        "scoredNodes": 3,
        "nodes": [a_row("one", 60), a_row("two", 48)],
    }
    since = {"boundAt": "two", "newNodes": ["two"], "newNodeCount": 1, "newPods": 3, "newPodsHere": 2}
    second = {"node": "two", "total": 48, "margin": 12, "alike": 1}
    assert bound(runnerUp=second, table=table, since=since) + "\n" == dedent("""\
        Pod shop/web runs on one (profile default-scheduler, Running).

        Recomputed with profile default-scheduler on the cluster of the file, as if it were not bound yet:
          It would go to one again. The runner-up is two, 12 points behind.
          Since it was bound at two, 1 node was added (two), and 3 pods that are there now were bound, 2 of them to one.

          Scores as RAW/OF 100/WEIGHTED:
          PLUGIN       one       two
          Fit ×1  60/60/60  48/48/48
          total         60        48
          … and 1 more nodes: -o wide shows all.
        """)


def test_pods_of_the_same_second_are_not_hidden():
    since = {"boundAt": "noon", "newNodes": [], "newNodeCount": 0, "newPods": 0, "newPodsHere": 0}
    shown = bound(since=since | {"podsOfTheSameSecond": 40})
    assert "no pod that is there now was bound. In the same second 40 more pods were bound." in shown
    assert "In the same second 1 more pod was bound." in bound(since=since | {"podsOfTheSameSecond": 1})


def test_a_bound_pod_that_would_go_elsewhere():
    second = {"node": "two", "total": 72, "margin": -12, "alike": 1}
    assert "  It would go to two now, 12 points ahead of one." in bound(runnerUp=second)


def test_a_bound_pod_among_equals():
    second = {"node": "two", "total": 60, "margin": 0, "alike": 3}
    shown = bound(runnerUp=second)
    assert "two (and 2 more nodes) has the same score as one: among equals the scheduler takes turns." in shown


def test_a_bound_pod_whose_node_would_reject_it_or_is_gone():
    own = {"node": "one", "plugin": "TaintToleration", "reasons": ["node(s) had untolerated taint(s)"]}
    decision = {"node": "two", "nodes": 3, "feasibleNodes": 2}
    shown = bound(ownNode=own, decision=decision)
    assert "  one is not feasible any more (TaintToleration: node(s) had untolerated taint(s)).\n" in shown
    assert shown.endswith("  It would go to two.")
    gone = bound(ownNode={"node": "one", "isGone": True}, decision=decision)
    assert gone.startswith("Pod shop/web is bound to one, which does not exist (")


def pending(recorded: dict[str, Any] | None = None, **more: Any) -> str:
    found: dict[str, Any] = {"pod": "shop/web", "profile": "theirs", "node": None, "phase": "Pending"}
    if recorded is not None:
        found["decision"] = recorded
    return in_full(found | {"recomputed": {"profile": "default-scheduler"} | more})


def test_a_pod_of_another_scheduler_extenders_and_what_a_snapshot_lacks_are_named():
    decision = {"node": "one", "nodes": 1, "feasibleNodes": 1}
    shown = pending(decision=decision, isOtherScheduler=True, lacksExtenders=True, notes=["Not in the snapshot: pods."])
    assert "  The pod names scheduler theirs; this is by the rules of default-scheduler.\n" in shown
    assert "  The extenders of the configuration were not called.\n" in shown
    assert "  Not in the snapshot: pods.\n" in shown
    assert shown.endswith("  It would go to one now: 1 of 1 node is feasible.")


def test_a_member_that_is_decided_alone_is_not_promised_a_node():
    shown = pending(decision={"node": "one", "nodes": 1, "feasibleNodes": 1}, lacksGroup=True)
    assert "  The other members of its group were not tried with it.\n  It would go to one now" in shown


def test_a_result_that_is_the_recorded_one_is_not_repeated():
    message = "0/1 nodes are available: 1 Insufficient cpu."
    recorded = {"node": None, "nodes": 1, "feasibleNodes": 0, "message": message, "time": "2026-01-01T00:00:00Z"}
    shown = pending(recorded, decision={"node": None, "nodes": 1, "feasibleNodes": 0, "message": message})
    assert shown.count(message) == 1
    assert "  The same result." in shown


def test_a_gated_pod_is_not_decided():
    shown = pending(gating={"plugin": "SchedulingGates", "reasons": ["later"]})
    assert shown.splitlines()[0].endswith("Pending): SchedulingGates keeps it out of the queue: later.")


def test_why_a_pod_was_not_decided_again():
    found = {
        "pod": "shop/web",
        "profile": "p",
        "node": None,
        "phase": "Pending",
        "notRecomputed": "nodes are forbidden.",
    }
    assert in_full(found).endswith("It was not decided again: nodes are forbidden.")


def test_earlier_attempts_and_the_time_of_the_next():
    recorded = {
        "node": None,
        "nodes": 1,
        "feasibleNodes": 0,
        "message": "no room",
        "time": "2026-01-01T00:05:00Z",
        "earlier": [
            {"time": "2026-01-01T00:00:00Z", "lastTime": "2026-01-01T00:00:09Z", "attempts": 3, "message": "no disk"},
            {"time": "2026-01-01T00:01:00Z", "lastTime": "2026-01-01T00:01:00Z", "attempts": 1, "message": "no room"},
        ],
    }
    found = {"pod": "shop/web", "profile": "p", "node": None, "phase": "Pending", "decision": recorded}
    shown = in_full(found | {"queue": "backoff", "nextAttempt": "2026-01-01T00:05:10Z"})
    assert "Without an event it is tried at 2026-01-01T00:05:10Z." in shown
    assert shown.endswith(
        "Earlier attempts:\n"
        "  2026-01-01T00:00:00Z to 2026-01-01T00:00:09Z  3 times: no disk\n"
        "  2026-01-01T00:01:00Z  no room"
    )


def why_not(**more: Any) -> str:
    found = {
        "pod": "shop/web",
        "node": "two",
        "runsOn": None,
        "scheduler": "p",
        "profile": "p",
        "isFeasible": True,
        "chosen": "one",
        "filters": [{"plugin": "Fit", "verdict": "passes"}],
        "scores": {"scoredNodes": 2, "nodes": [a_row("two", 40), a_row("one", 41)]},
    }
    return why_not_in_full(found | more)


def test_the_first_line_of_why_not():
    assert why_not().startswith("Pod shop/web fits two, but one has a higher score by 1 point.\n")
    assert why_not(isFeasible=False, missing=["lacks 1 cpu"]).startswith(
        "Pod shop/web cannot run on two: it lacks 1 cpu.\n"
    )
    assert why_not(chosen="two").startswith(
        "Pod shop/web waits for a node, and would go to two if it were decided now.\n"
    )
    assert why_not(runsOn="two").startswith("Pod shop/web runs on two.\n")


def test_why_not_without_a_change_or_without_scores():
    assert why_not(changes=[]).endswith("No change that is known here would bring it to two.")
    assert "It cannot be scored: broken" in why_not(scoreFault="broken")


def test_a_filter_that_rejects_because_of_nominated_pods():
    verdict = {"plugin": "Fit", "verdict": "rejects", "reasons": ["no room"], "isAmongNominated": True}
    assert "  Fit  rejects  no room (with the pods that are nominated to it)\n" in why_not(filters=[verdict])


def test_an_owner_whose_pods_all_run_and_one_without_pods():
    group = {"cause": "Running", "isPending": False, "pods": ["a", "b"], "count": 2, "nodes": {"one": 2}}
    found = {"owner": "job/nightly", "namespace": "shop", "podCount": 2, "groups": [group]}
    assert owner_in_full(found).splitlines() == [
        "job/nightly in namespace shop: all 2 pods have a node.",
        "  Recomputed on the cluster as it is; each pending pod was decided alone.",
        "",
        "Running: 2 pods: a, b",
        "  on 1 node: one (2)",
    ]
    assert owner_in_full(found | {"podCount": 0, "groups": []}) == "job/nightly in namespace shop has no pods."
