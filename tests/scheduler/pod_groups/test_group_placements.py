"""Placements of a pod group: which plugin offers them, and which pods count in their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.scheduler.pod_groups.scene import TOPOLOGY, Scene, members, played

from mooring.framework import GroupPlacement, NodeRows, Plugin, PodGroupInfo, Refusal
from mooring.testing import a_node_object, a_pod, a_pod_group


class NodeByNode(Plugin):
    """Each node is a placement, whatever the group requires."""

    def placement_generate(self, group: PodGroupInfo, nodes: NodeRows) -> Sequence[GroupPlacement]:
        return [GroupPlacement(node.name, nodes.take(np.array([at], np.int64))) for at, node in enumerate(nodes)]


def test_only_the_first_generator_is_used():
    """G3: the placements of the second one, which the gang would not fit, are not tried."""

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("a", cpu="1"), a_node_object("b", cpu="1"))
        scene.add(a_pod_group("gang", min_count=2), *members(2))
        await scene.run()
        assert set(scene.bound().values()) == {"a", "b"}

    played(TOPOLOGY, story, NodeByNode)


def test_a_generator_that_is_the_only_one_is_used():
    """G3: with the default one disabled, another one decides which nodes are tried together."""

    async def story(scene: Scene) -> None:
        gang = a_pod_group("gang", min_count=2)
        scene.add(a_node_object("a", cpu="1"), a_node_object("b", cpu="1"), gang, *members(2))
        await scene.run()
        assert scene.bound() == {}
        message = "0/2 placements are available, first placement status: pod group is unschedulable"
        assert scene.condition(gang) == ("False", "Unschedulable", message)

    played(TOPOLOGY, story, NodeByNode, disabled=["TopologyPlacementGenerator"])


def test_members_that_require_preemption_count_in_the_score_of_a_placement():
    """G35: on `roomy` one pod fits and one would after an eviction; on `full`, which is fuller, only one fits.

    With both of its members `roomy` has the higher score; with one each `full` would, and its member would be bound.
    """

    async def story(scene: Scene) -> None:
        scene.add(a_node_object("roomy", cpu="3"), a_node_object("full", cpu="9"))
        scene.add(a_pod("low", cpu="1", node="roomy", priority=0), a_pod("high", cpu="8", node="full", priority=99))
        group, (first, second) = a_pod_group("gang"), members(2)
        second = a_pod("gang-1", cpu="2", group="gang", priority=1)
        scene.add(group, first, second)
        await scene.run()
        assert scene.bound() == {}
        waiting = "pod group is unschedulable, pod group is waiting for preemption to complete"
        assert scene.condition(group) == ("False", "Unschedulable", waiting)
        assert set(scene.client.deleted) == {"default/low"}

    played(TOPOLOGY, story, NodeByNode, disabled=["TopologyPlacementGenerator"])


def observed(scene: Scene, name: str) -> dict[tuple[str, ...], float]:
    """(point, or plugin and point, and status) → how often it was observed, of points of placements."""
    return {
        tuple(
            sample.labels[key] for key in ("plugin", "extension_point", "status") if key in sample.labels
        ): sample.value
        for family in text_string_to_metric_families(scene.core.metrics.text().decode())
        for sample in family.samples
        if sample.name == f"scheduler_{name}_count" and sample.labels["extension_point"].startswith("Placement")
    }


def test_points_of_placements_are_observed_as_those_of_pods():
    """G34: the score of each placement that fits, then the plugin that normalizes; the points once each."""

    async def story(scene: Scene) -> None:
        scene.core.metrics.attempts.chance = lambda: 0.0  # every attempt is sampled
        scene.add(a_node_object("a"), a_node_object("b"), a_pod_group("gang", min_count=2), *members(2))
        await scene.run()
        assert observed(scene, "framework_extension_point_duration_seconds") == {
            ("PlacementGenerate", "Success"): 1,
            ("PlacementScore", "Success"): 1,
        }
        assert observed(scene, "plugin_execution_duration_seconds") == {
            ("NodeByNode", "PlacementGenerate", "Success"): 1,
            ("PodGroupPodsCount", "PlacementScore", "Success"): 2,
            ("PodGroupPodsCount", "PlacementScoreExtensionNormalize", "Success"): 1,
            ("NodeResourcesFit", "PlacementScore", "Success"): 2,
        }

    played(TOPOLOGY, story, NodeByNode, disabled=["TopologyPlacementGenerator"])


class Nowhere(Plugin):
    def placement_generate(self, group: PodGroupInfo, nodes: NodeRows) -> Refusal:
        return Refusal("nowhere")


class Broken(Plugin):
    def placement_generate(self, group: PodGroupInfo, nodes: NodeRows) -> Sequence[GroupPlacement]:
        raise RuntimeError("broken")


@pytest.mark.parametrize(("plugin", "status"), [(Nowhere, "Unschedulable"), (Broken, "Error")])
def test_the_status_of_a_point_of_placements_is_that_of_its_plugin(plugin: type[Plugin], status: str):
    """G31: a generator that refuses or fails ends the attempt."""

    async def story(scene: Scene) -> None:
        scene.core.metrics.attempts.chance = lambda: 0.0
        scene.add(a_node_object("a"), a_pod_group("gang", min_count=2), *members(2))
        await scene.run_one()
        assert observed(scene, "framework_extension_point_duration_seconds") == {("PlacementGenerate", status): 1}
        assert observed(scene, "plugin_execution_duration_seconds") == {(plugin.name, "PlacementGenerate", status): 1}

    played(TOPOLOGY, story, plugin, disabled=["TopologyPlacementGenerator"])
