"""What the page reads of a cluster in a file: nodes in columns, the queue in groups, pods with their evidence."""

from __future__ import annotations

import itertools

import pytest
from tests.web.pages import NODES, PODS, mirrored

from mooring.testing import a_pod
from mooring.testing.storage import claim_volume
from mooring.web.pod_page import pod_page
from mooring.why import recomputed, why_not
from mooring.why.pod_document import known, with_summary


async def test_the_cluster_names_counts_profiles_and_resources(page):
    cluster = await page.get("cluster")
    assert cluster["counts"] == {"nodes": 2, "pods": 4, "pending": 3, "bound": 1}
    assert (cluster["source"], cluster["recorded"], cluster["actions"]) == ("file", False, False)
    assert cluster["resources"][:2] == ["cpu", "memory"]
    [profile] = cluster["profiles"]
    fit = next(each for each in profile["plugins"] if each["name"] == "NodeResourcesFit")
    assert fit == {"name": "NodeResourcesFit", "points": ["preFilter", "filter", "preScore", "score"], "weight": 1}


async def test_nodes_are_columns_of_one_length(page):
    nodes = await page.get("nodes")
    assert nodes["names"] == ["node-1", "node-2"]
    assert nodes["zones"] == ["a", "b"]
    assert nodes["taints"] == [[], ["gpu=true:NoSchedule"]]
    assert nodes["pods"] == [1, 0]
    assert nodes["allocatable"]["cpu"] == [2000, 4000]
    assert nodes["requested"]["memory"] == [2**30, 0]
    assert nodes["fragmentation"] == [0.5, 0.0]
    columns = [column for column in nodes.values() if isinstance(column, list)]
    assert {len(column) for column in columns} == {2}


async def test_a_node_shows_its_pods_and_the_pending_pods_that_it_was_refused_to(page):
    node = await page.get("nodes/node-1")
    assert [(pod["namespace"], pod["name"], pod["requests"]["cpu"]) for pod in node["pods"]] == [
        ("shop", "web-0", 1500)
    ]
    assert {(each["name"], each["plugin"], each["reason"]) for each in node["refused"]} == {
        ("web-1", "NodeResourcesFit", "Insufficient cpu"),
        ("web-2", "NodeResourcesFit", "Insufficient cpu"),
        ("train", "NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
    }


async def test_pending_pods_are_grouped_by_reason_the_highest_priority_first(page):
    queue = await page.get("queue")
    assert queue["pending"] == 3
    assert [(group["total"], [pod["name"] for pod in group["pods"]]) for group in queue["groups"]] == [
        (2, ["web-2", "web-1"]),
        (1, ["train"]),
    ]
    assert queue["groups"][0]["reason"] == "1 of 2 nodes has too little cpu, 1 has a taint that it does not tolerate"
    assert queue["groups"][0]["message"].startswith("0/2 nodes are available: ")


async def test_a_pod_has_the_document_of_explain(page, mirror):
    found = await page.get("pods/shop/web-1")
    expected = known(PODS[1]) | {"isFile": True, "recomputed": recomputed(mirror.recomputation, PODS[1], 20)}
    for key, value in with_summary(expected).items():
        assert found[key] == value, key


async def test_filters_are_a_funnel_in_their_order(page):
    found = await page.get("pods/shop/web-1")
    rejecting = [(each["plugin"], each["before"], each["after"]) for each in found["funnel"] if each["rejected"]]
    assert rejecting == [("TaintToleration", 2, 1), ("NodeResourcesFit", 1, 0)]
    assert found["funnel"][0]["before"] == 2
    assert all(before["after"] == after["before"] for before, after in itertools.pairwise(found["funnel"]))


async def test_a_filter_that_rejects_behind_another_one_is_counted():
    pod = a_pod("web", volumes=[claim_volume("nosuch")])
    with mirrored(NODES[:1], [pod]) as mirror:
        steps = {each["plugin"]: each for each in pod_page(mirror, pod, None)["funnel"]}
    assert (steps["VolumeRestrictions"]["rejected"], steps["VolumeRestrictions"]["total"]) == (1, 1)
    assert (steps["VolumeBinding"]["rejected"], steps["VolumeBinding"]["total"]) == (0, 1)
    assert (steps["NodeResourcesFit"]["rejected"], steps["NodeResourcesFit"]["total"]) == (0, 0)


async def test_a_bound_pod_has_scores_whose_parts_follow_the_plugins(page):
    found = await page.get("pods/shop/web-0")
    scores = found["scores"]
    for node in scores["nodes"]:
        assert len(node["parts"]) == len(scores["plugins"])
        assert node["total"] == sum(part["weighted"] for part in node["parts"])


async def test_why_not_is_the_document_of_the_command(page, mirror):
    found = await page.get("pods/shop/web-1/why-not/node-2")
    assert found == why_not(mirror.recomputation, PODS[1], "node-2")


async def test_pods_are_found_by_a_part_of_their_name(page):
    assert (await page.get("pods?q=WEB"))["total"] == 3
    found = await page.get("pods?q=web&namespace=shop&limit=1")
    assert found == {
        "total": 3,
        "pods": [{"namespace": "shop", "name": "web-0", "node": "node-1", "phase": "Running"}],
    }


MISTAKES = {
    "a pod that does not exist": ("pods/shop/web-7", 404, ["web-0", "web-1", "web-2"]),
    "a namespace without pods": ("pods/shoop/web-1", 404, ["shop"]),
    "a node that does not exist": ("nodes/node", 404, ["node-1", "node-2"]),
    "why-not of an unknown node": ("pods/shop/web-1/why-not/node-9", 404, ["node-2", "node-1"]),
    "a path that does not exist": ("secrets", 404, None),
    "a limit that is no number": ("pods?limit=many", 400, None),
    "a limit that is too high": ("pods?limit=1000000000000", 400, None),
}


@pytest.mark.parametrize(("path", "status", "near"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_mistake_is_named_with_the_nearest_names(page, path, status, near):
    error = (await page.get(path, status))["error"]
    assert error["code"] == status
    assert error["message"]
    if near is not None:
        assert set(error["near"]) == set(near)
