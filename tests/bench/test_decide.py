"""The benchmark runs and measures what it claims; no test limits how long it takes."""

import pytest

from mooring.bench.decide import default_profile, measure
from mooring.bench.workloads import WORKLOADS
from mooring.framework import Cycle, NodeView, Plugin, Pod, Point, Rejection


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_can_be_measured(workload):
    [figure] = measure(workload, nodes=5, pods=10, running=5)
    assert figure.workload == workload
    assert figure.decide_micros > 0


def test_the_default_profile_is_measured():
    assert "NodeResourcesFit" in [plugin.name for plugin in default_profile().at(Point.FILTER)]


class Added(Plugin):
    """Rejects no node."""

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None


def test_a_plugin_is_added_behind_the_default_ones():
    assert default_profile(added=[Added]).at(Point.FILTER)[-1].name == "Added"
    without, added = measure("basic", nodes=5, pods=10, added=[Added], rounds=2)
    assert (without.added, added.added) == ((), ("Added",))
    assert added.decide_micros > 0
