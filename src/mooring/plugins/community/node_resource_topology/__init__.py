"""NodeResourceTopologyMatch: nodes whose NUMA nodes can take the pod, and those that do it best.

`topologies` reads what an agent on each node reports, `pod_needs` what a pod requests of NUMA nodes, `alignment`
decides whether it fits, `scores` how well. `caches` account for pods that the reports do not contain yet.
"""

from mooring.plugins.community.node_resource_topology.plugin import NodeResourceTopologyMatch

__all__ = ["NodeResourceTopologyMatch"]
