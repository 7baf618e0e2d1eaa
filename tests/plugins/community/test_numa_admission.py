"""NodeResourceTopologyMatch and the topology manager of simulated kubelets agree on random pods."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.objects.core import Container, PodSpec, ResourceRequirements
from mooring.plugins.community.node_resource_topology import NodeResourceTopologyMatch
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology
from mooring.simulated.kubelet.numa import NumaNodeState, read_numa, topology_document
from mooring.simulated.records import PodRecord
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

GPU = "example.com/gpu"
ALLOCATABLE = {"cpu": "48", "memory": "48Gi", GPU: "16"}

zones = st.lists(
    st.builds(
        lambda cpu, memory, gpu: {"cpu": str(cpu), "memory": f"{memory}Gi", GPU: str(gpu)},
        st.integers(1, 8),
        st.integers(1, 8),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=3,
)
containers = st.lists(
    st.builds(
        lambda cpu, memory, gpu: {"cpu": str(cpu), "memory": f"{memory}Gi"} | ({GPU: str(gpu)} if gpu else {}),
        st.integers(1, 6),
        st.integers(1, 6),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=3,
)


def a_record(name, requests):
    containers = [
        {"name": f"c{index}", "resources": {"requests": each, "limits": each}} for index, each in enumerate(requests)
    ]
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"containers": containers}}, PodRecord
    )


def admits(topology, requests):
    """Whether the node passes the filter of the plugin."""
    services = Services()
    services.objects(NodeResourceTopology).put(msgspec.convert(topology, NodeResourceTopology))
    pod = a_pod("pod")
    force_setattr(
        pod,
        "spec",
        PodSpec(
            containers=tuple(Container(resources=ResourceRequirements(requests=each, limits=each)) for each in requests)
        ),
    )
    cluster = a_cluster(a_node("node", cpu="48", memory="48Gi", resources={GPU: "16"}), services=services)
    plugin = a_plugin(NodeResourceTopologyMatch, services)
    return plugin.filter(pod, next(iter(cluster.nodes)), a_cycle(pod, cluster)) is None


@pytest.mark.parametrize("policy", ["single-numa-node", "restricted", "best-effort", "none"])
@settings(max_examples=60)
@given(scope=st.sampled_from(["container", "pod"]), zones=zones, running=containers, wanted=containers)
def test_a_node_passes_exactly_where_its_kubelet_admits_the_pod(policy, scope, zones, running, wanted):
    text = msgspec.json.encode({"policy": policy, "scope": scope, "zones": zones}).decode()
    kubelet = NumaNodeState(read_numa(text, ALLOCATABLE))
    kubelet.admit(a_record("running", running))
    topology = topology_document("node", "uid", kubelet, [])
    assert admits(topology, wanted) == kubelet.admit(a_record("pod", wanted))
