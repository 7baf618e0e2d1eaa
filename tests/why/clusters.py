"""Small clusters, and the scheduler that decides on them again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import msgspec

from mooring.config import default_configuration, load_configuration
from mooring.framework import Pod
from mooring.objects import Node
from mooring.objects.meta import KubeObject, OwnerReference
from mooring.plugins.catalogue import catalogue
from mooring.simulator import Cluster
from mooring.why import Recomputation


@contextlib.contextmanager
def recomputing(
    nodes: Sequence[Node], pods: Sequence[Pod] = (), configuration: str = "", objects: Sequence[KubeObject] = ()
) -> Iterator[Recomputation]:
    """With the default profile, or with this configuration."""
    registry = catalogue()
    loaded = default_configuration(registry)
    if configuration:
        loaded = load_configuration(configuration, source="the test", registry=registry).configuration
    with Recomputation(Cluster(nodes, pods, objects), loaded, registry) as recomputation:
        yield recomputation


def owned(pod: Pod, kind: str, name: str) -> Pod:
    """The pod as this controller creates it."""
    owner = OwnerReference(kind=kind, name=name, uid=f"{kind}/{name}", controller=True)
    return Pod(
        metadata=msgspec.structs.replace(pod.metadata, owner_references=(owner,)), spec=pod.spec, status=pod.status
    )
