"""`kubectl drain` under PodDisruptionBudgets: it evicts what they allow, and shows why it may not."""

from __future__ import annotations

from tests.real_kubectl.conftest import Kubectl, Up

NODE = "node-2"


def test_a_drain_evicts_what_the_budget_allows(up: Up, shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause", "--replicas=6")
    shop.run("create", "poddisruptionbudget", "web", "--selector=app=web", "--max-unavailable=1")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    shop.run("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/web", "--timeout=60s")
    assert shop.rows("get", "pdb", "web")[0]["ALLOWED DISRUPTIONS"] == "1"
    assert NODE in {row["NODE"] for row in shop.rows("get", "pods", "-o", "wide")}
    try:
        # Where an eviction waits for the replacement of the one before, kubectl tries again after five seconds.
        up.run("drain", NODE, "--force", "--ignore-daemonsets", "--timeout=60s")
        shop.run("rollout", "status", "deployment/web", "--timeout=60s")
        assert NODE not in {row["NODE"] for row in shop.rows("get", "pods", "-o", "wide")}
    finally:
        up.run("uncordon", NODE)
    shop.run("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/web", "--timeout=60s")
    status = shop.json("get", "pdb", "web")["status"]
    assert (status["expectedPods"], status["desiredHealthy"], status["currentHealthy"]) == (6, 5, 6)
    (condition,) = status["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionAllowed", "SufficientPods")


def test_a_drain_that_the_budget_forbids_shows_the_reason_at_once(up: Up, shop: Kubectl):
    shop.run("create", "deployment", "web", "--image=pause", "--replicas=3")
    shop.run("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=100%")
    shop.run("rollout", "status", "deployment/web", "--timeout=60s")
    shop.run("wait", "--for=jsonpath={.status.currentHealthy}=3", "pdb/web", "--timeout=60s")
    node = shop.rows("get", "pods", "-o", "wide")[0]["NODE"]
    try:
        refusal = up.refusal("drain", node, "--force", "--ignore-daemonsets", "--timeout=3s")
        assert "Cannot evict pod as it would violate the pod's disruption budget" in refusal
    finally:
        up.run("uncordon", node)
    assert len(shop.rows("get", "pods")) == 3
    assert shop.json("get", "pdb", "web")["status"]["conditions"][0]["reason"] == "InsufficientPods"
