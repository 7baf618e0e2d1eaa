"""For authors of plugins: pods, nodes, cycles and small clusters in memory, to test a rule in a few lines.

    def test_a_full_node_is_refused():
        pod, node = a_pod(cpu="1"), a_node(cpu="1", running=[a_pod(cpu="1")])
        assert a_plugin(MyFilter).filter(pod, node, a_cycle(pod)) is not None

`a_plugin` builds a plugin with services in memory (`Services`), `a_cluster` schedules with it. `mooring.testing.forms`
holds the plain and the vector form of a rule equal; `mooring.testing.strategies` has hypothesis strategies for that.
"""

from mooring.base.errors import OperatorMistake
from mooring.testing.builders import (
    a_constraint,
    a_node_object,
    a_pod,
    a_pod_group,
    a_taint,
    a_term,
    a_toleration,
    pod_rules,
    requires,
)
from mooring.testing.cluster import Cluster, TestCycle, a_cluster, a_cycle, a_node
from mooring.testing.forms import (
    name_of,
    plugins_with_both_forms,
    refused_at_once,
    refused_one_by_one,
    scored_at_once,
    scored_one_by_one,
)
from mooring.testing.services import Services, a_plugin

__all__ = [
    "Cluster",
    "OperatorMistake",
    "Services",
    "TestCycle",
    "a_cluster",
    "a_constraint",
    "a_cycle",
    "a_node",
    "a_node_object",
    "a_plugin",
    "a_pod",
    "a_pod_group",
    "a_taint",
    "a_term",
    "a_toleration",
    "name_of",
    "plugins_with_both_forms",
    "pod_rules",
    "refused_at_once",
    "refused_one_by_one",
    "requires",
    "scored_at_once",
    "scored_one_by_one",
]
