"""ImageLocality: favour nodes that have the pod's images already.

Each image of a container, an init container or an image volume that the node has counts with its size, in the
proportion of all nodes that have it: so an image that is on one node only does not draw every pod there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mooring.framework import Cycle, Image, IntArray, NodeRows, NodeView, Plugin, Pod, constant_score
from mooring.framework.normalizers import HIGHEST_SCORE

MIB = 1024 * 1024
LOWEST_BYTES = 23 * MIB
"""Less to pull than this counts as nothing."""
HIGHEST_BYTES = 1000 * MIB
"""Per container; more than this is not better."""
FEW_IMAGES = 4


class ImageLocality(Plugin):
    """Favour nodes that have the pod's images."""

    pod_fields = ("spec.containers", "spec.initContainers", "spec.volumes")

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        highest = _highest(pod)
        return _score(sum(size for image, size in _images(pod, highest, cycle) if image.on(node)), highest)

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        """`score`, for many nodes at once."""
        highest = _highest(pod)
        known = _images(pod, highest, cycle)
        if not known:
            return constant_score(0, nodes)
        if len(known) == 1:
            [(image, size)] = known
            return image.on_rows(nodes) * np.int64(_score(size, highest))
        if len(known) > FEW_IMAGES:
            total = sum(image.on_rows(nodes) * np.int64(size) for image, size in known)
            counted = np.clip(total, LOWEST_BYTES, highest)
            return HIGHEST_SCORE * (counted - LOWEST_BYTES) // (highest - LOWEST_BYTES)
        # Few images make few different sums: they are looked up by which of the images a node has, a bit for each.
        sums = [0]
        has = np.zeros(len(nodes), np.int8)
        for place, (image, size) in enumerate(known):
            sums += [size + others for others in sums]
            has |= image.on_rows(nodes).view(np.int8) * np.int8(1 << place)
        return np.array([_score(one, highest) for one in sums], np.int64).take(has)


def _images(pod: Pod, highest: int, cycle: Cycle) -> Sequence[tuple[Image, int]]:
    """The pod's images that some node has, each with the bytes that it counts for on a node that has it."""
    notes = pod.template.family.notes
    if (names := notes.get(ImageLocality)) is None:
        names = tuple(_names(pod))
        notes.keep(ImageLocality, names)
    found: list[tuple[Image, int]] = []
    for name in names:
        if (image := cycle.image(name)) is not None:
            found.append((image, min(int(image.size_bytes * (image.node_count / len(cycle.nodes))), highest)))
    return found


def _names(pod: Pod) -> Iterator[str]:
    for containers in (pod.spec.init_containers, pod.spec.containers):
        for container in containers:
            yield _with_tag(container.image)
    for volume in pod.spec.volumes:
        if (source := volume.get("image")) is not None:
            yield _with_tag(source.get("reference") or "")


def _with_tag(name: str) -> str:
    """The name as nodes list it: what has neither tag nor digest is the latest. A port before a "/" is no tag."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


def _highest(pod: Pod) -> int:
    """Image volumes do not raise it."""
    return HIGHEST_BYTES * (len(pod.spec.init_containers) + len(pod.spec.containers))


def _score(bytes_there: int, highest: int) -> int:
    counted = max(LOWEST_BYTES, min(bytes_there, highest))
    return HIGHEST_SCORE * (counted - LOWEST_BYTES) // (highest - LOWEST_BYTES)
