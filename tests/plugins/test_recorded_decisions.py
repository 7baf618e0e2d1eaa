"""The default plugins decide as kube-scheduler v1.36 did, in every recorded case of three families.

Compared per plugin, because some default plugins are still missing: the plugin, code and reasons of each refused node,
which nodes pass, which pre_filter limits the nodes, and raw and normalised scores. A refusal by a plugin that we do
not have ends the comparison for that node; the families here have none.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.framework import Plugin
from mooring.objects import Node, Pod
from mooring.objects.placed import placed
from mooring.plugins.default.node_affinity import NodeAffinity
from mooring.plugins.default.node_name import NodeName
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.plugins.default.taint_toleration import TaintToleration
from mooring.testing import Services, a_cluster, a_plugin

FOLDER = Path(__file__).parents[1] / "data" / "oracle"
FAMILIES = ("nodeaffinity", "taints", "resources")
IN_FILTER_ORDER: dict[type[Plugin], int] = {
    NodeUnschedulable: 1,
    NodeName: 1,
    TaintToleration: 3,
    NodeAffinity: 2,
    NodeResourcesFit: 1,
}
"""With their default weights."""


OURS = {cls.name for cls in IN_FILTER_ORDER}


def recorded(family: str) -> list[dict[str, Any]]:
    with gzip.open(FOLDER / f"{family}.jsonl.gz") as file:
        return [msgspec.json.decode(line) for line in file]


def the_cluster_of(case: dict[str, Any]):
    services = Services(gates=case.get("featureGates"))
    profile = (case["config"] or {"profiles": [{}]})["profiles"][0]
    arguments = {one["name"]: one["args"] for one in profile.get("pluginConfig", [])}
    plugins = [
        (a_plugin(cls, services, **_without_header(arguments.get(cls.name, {}))), weight)
        for cls, weight in IN_FILTER_ORDER.items()
    ]
    cluster = a_cluster(plugins=plugins, services=services)
    for document in case["objects"]:
        if document["kind"] == "Node":
            cluster.state.set_node(msgspec.convert(document, Node))
        elif document["kind"] == "Pod":
            pod = msgspec.convert(document, Pod)
            assert pod.spec.node_name, "these families have no nominated pods"
            if pod.status.phase not in ("Succeeded", "Failed"):  # the scheduler's watch does not show those
                cluster.state.set_pod(placed(pod))
    return cluster


def _without_header(args: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}


def differences(case: dict[str, Any], expect: dict[str, Any]) -> Iterator[str]:
    """What we decide otherwise than kube-scheduler did."""
    decision = the_cluster_of(case).decide(msgspec.convert(case["pod"], Pod))
    if decision.fault is not None:
        yield f"fault: {decision.fault}"
        return
    for node, theirs in expect["nodes"].items():
        ours = decision.rejections.get(node)
        told = (
            None
            if ours is None
            else {"plugin": ours[0], "code": ours[1].code.value, "reasons": sorted(ours[1].reasons)}
        )
        if told != theirs:
            yield f"{node}: {told} instead of {theirs}"
    skipped = {name for name in decision.cycle.skipped_filters if name in OURS}
    if skipped != {name for name in expect["preFilter"]["skipped"] if name in OURS}:
        yield f"pre_filter skipped {skipped}"
    scored = decision.columns()
    if scored is None:
        return
    if decision.cycle.skipped_scores != {name for name in expect["scoreSkipped"] if name in OURS}:
        yield f"pre_score skipped {decision.cycle.skipped_scores}"
    for plugin in scored.raw:
        for node, raw, normalized in zip(scored.nodes, scored.raw[plugin], scored.normalized[plugin], strict=True):
            theirs = expect["scores"][node]
            if (raw, normalized) != (theirs["raw"][plugin], theirs["normalized"][plugin]):
                yield (
                    f"{plugin} on {node}: {raw} → {normalized} instead of "
                    f"{theirs['raw'][plugin]} → {theirs['normalized'][plugin]}"
                )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_recorded_decisions(family):
    cases = recorded(family)
    assert len(cases) == 400
    different = [
        f"{one['case']['name']}: {difference}"
        for one in cases
        for difference in differences(one["case"], one["expect"])
    ]
    assert not different, f"{len(different)} differences\n" + "\n".join(different[:20])
