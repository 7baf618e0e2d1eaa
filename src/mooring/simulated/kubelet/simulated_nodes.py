"""The state of a simulated node: pod addresses, pulled images, started pods. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from mooring.base.durations import go_duration
from mooring.simulated.kubelet.node_registration import pod_range
from mooring.simulated.kubelet.pod_status import always_pulls, image_bytes
from mooring.simulated.records import ContainerRecord, Document, NodeRecord, PodRecord

_OVERFLOW = ipaddress.IPv4Network("10.64.0.0/10")
_BYTES_PER_SECOND = 80_000_000
MAX_REPORTED_IMAGES = 50
"""As many as a kubelet reports in its node's status."""


class SimulatedNode:
    """One simulated node."""

    def __init__(self, node: NodeRecord) -> None:
        self.node = node
        self.has_unreported_images = False
        """Images were pulled that the node's status does not report yet."""
        self._addresses = _Addresses(node.spec.pod_cidr)
        self._address_of: dict[str, str] = {}
        self._images = {name: int(image.get("sizeBytes", 0)) for image in node.status.images for name in image["names"]}

    @property
    def name(self) -> str:
        return self.node.name

    def changed(self, node: NodeRecord) -> None:
        if node.spec.pod_cidr != self.node.spec.pod_cidr:
            self._addresses = _Addresses(node.spec.pod_cidr, self._address_of.values())
        self.node = node

    def runs(self, pod: PodRecord) -> bool:
        return pod.uid in self._address_of

    def admit(self, pod: PodRecord) -> str:
        """Admit the pod; returns its address, which stays the same until `forget`."""
        known = self._address_of.get(pod.uid) or pod.status.pod_ip
        if not known:
            known = self.node.address if pod.spec.host_network else self._addresses.next()
        self._address_of[pod.uid] = known
        self._addresses.take(known)
        return known

    def forget(self, pod: PodRecord) -> None:
        if (address := self._address_of.pop(pod.uid, None)) is not None:
            self._addresses.release(address)

    def pull(self, container: ContainerRecord) -> list[tuple[str, str]]:
        """Pull the container's image; returns reasons and messages of the events."""
        image = container.image
        if image in self._images and not always_pulls(container):
            return [("Pulled", f'Container image "{image}" already present on machine and can be accessed by the pod')]
        size = image_bytes(image)
        # Pulling a present image only resolves its tag.
        seconds = 0.2 + (0.0 if image in self._images else size / _BYTES_PER_SECOND)
        took = go_duration(round(seconds, 3))  # in milliseconds, as a kubelet reports it
        self.has_unreported_images |= image not in self._images
        self._images[image] = size
        return [
            ("Pulling", f'Pulling image "{image}"'),
            (
                "Pulled",
                f'Successfully pulled image "{image}" in {took} ({took} including waiting). Image size: {size} bytes.',
            ),
        ]

    def take_unreported_images(self) -> list[Document]:
        """The images to report now; until another one is pulled, none is unreported."""
        self.has_unreported_images = False
        return self.reported_images()

    def report_again(self, *, is_needed: bool) -> None:
        """The report of images failed; whether it must be repeated."""
        self.has_unreported_images = is_needed

    def reported_images(self) -> list[Document]:
        """The images for the node's status, largest first, as a kubelet reports them."""
        largest = sorted(self._images.items(), key=lambda image: (-image[1], image[0]))
        return [{"names": [name], "sizeBytes": size} for name, size in largest[:MAX_REPORTED_IMAGES]]


def free_ordinal(nodes: Iterable[NodeRecord]) -> int:
    """The first ordinal whose pod CIDR is free."""
    taken = {node.spec.pod_cidr for node in nodes}
    ordinal = 0
    while pod_range(ordinal) in taken:
        ordinal += 1
    return ordinal


class _Addresses:
    """Pod addresses of one node, in turn; from an overflow range where the node's pod CIDR is exhausted."""

    def __init__(self, cidr: str, taken: Iterable[str] = ()) -> None:
        network = ipaddress.ip_network(cidr, strict=False) if cidr else ipaddress.ip_network("0.0.0.0/32")
        self._first = int(network.network_address) + 2  # .0 is the network's and .1 the gateway's
        self._size = max(0, network.num_addresses - 3)
        self._family = type(network.network_address)
        self._cursor = 0
        self._taken = set(taken)
        self._beyond = 0

    def next(self) -> str:
        # An address is not reused at once: clients of the pod that had it would reach another one.
        for _ in range(self._size):
            address = str(self._family(self._first + self._cursor))
            self._cursor = (self._cursor + 1) % self._size
            if address not in self._taken:
                return address
        self._beyond += 1
        return str(_OVERFLOW.network_address + self._beyond)

    def take(self, address: str) -> None:
        self._taken.add(address)

    def release(self, address: str) -> None:
        self._taken.discard(address)
