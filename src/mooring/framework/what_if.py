"""What post_filter reads: why the pod fits no node, and whether it would fit if pods were evicted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from mooring.framework.cycle import Cycle
from mooring.framework.nodes import NodeRows, NodeView
from mooring.framework.verdicts import BoolArray, FloatArray, IntArray, Refusal
from mooring.objects.core import Pod
from mooring.objects.placed import PlacedPod


class Diagnosis(Protocol):
    """Why the pod fits no node, for post_filter."""

    @property
    def rejections(self) -> Mapping[str, tuple[str, Refusal]]:
        """Node name → the plugin that rejected it and its rejection."""
        ...

    @property
    def cycle(self) -> Cycle:
        """The cycle in which the pod was refused, with this plugin's pre_filter state."""
        ...

    def resolvable_nodes(self) -> NodeRows:
        """The nodes where evicting pods could help: their rejection is not unresolvable."""
        ...


class Evicted(Protocol):
    """Pods that a what-if evicts from a node."""

    def reprieve(self, pod: PlacedPod) -> None:
        """This one stays on the node after all."""
        ...

    def evict(self, pod: PlacedPod) -> None:
        """This one is evicted as well."""
        ...


class LowerPriorityPods(Protocol):
    """The pods of lower priority on many nodes: node by node, the most important first on each."""

    @property
    def nodes(self) -> NodeRows:
        """The nodes that have any."""
        ...

    @property
    def has_any(self) -> BoolArray:
        """Which of the nodes in question these are."""
        ...

    @property
    def first(self) -> IntArray:
        """Per node, where its pods begin."""
        ...

    @property
    def counts(self) -> IntArray:
        """Per node, how many there are."""
        ...

    @property
    def node(self) -> IntArray:
        """Per pod, the position of its node."""
        ...

    @property
    def priority(self) -> IntArray: ...
    @property
    def started(self) -> FloatArray:
        """When it started; infinity where it has not."""
        ...

    def __len__(self) -> int:
        """How many pods."""
        ...

    def pods(self, where: BoolArray) -> list[PlacedPod]:
        """Those of them where the mask is true."""
        ...

    def of_nodes(self, positions: IntArray) -> list[Sequence[PlacedPod]]:
        """For each of these nodes a list that ends with its pods of lower priority; it does not change any more."""
        ...

    def numbers(
        self,
        key: Hashable,
        number: Callable[[PlacedPod], int],
        alike: Callable[[PlacedPod], Hashable] | None = None,
    ) -> IntArray:
        """A number per pod, kept under the key as long as the pods of its node do not change.

        `alike`: what the number depends on; it is computed once for all pods for which this is equal.
        """
        ...


def labels_and_namespace(pod: PlacedPod) -> Hashable:
    """What selectors read of a pod: see `LowerPriorityPods.numbers`."""
    return pod.namespace, tuple(pod.labels.items()), pod.is_terminating


@dataclass(frozen=True, slots=True)
class Victims:
    """What evicting pods of lower priority would do, for many nodes."""

    refusals: Iterable[tuple[IntArray, Refusal]]
    """The rows of nodes where the pod would not fit without all of them, by refusal; computed when read."""
    is_refused: BoolArray
    """Per node, whether it is one of these."""
    is_known: BoolArray
    """Per node, whether anything is known: the others need a dry run of their own, in a `without`."""
    is_victim: BoolArray
    """Per pod."""


class WhatIf(Protocol):
    """Whether the pod would fit if pods were evicted; for post_filter. The state is changed and restored."""

    @property
    def seed(self) -> int:
        """Where a search among many nodes may begin: randomness as an input, so that the decision can be repeated."""
        ...

    def lower_priority_pods(self, pod: Pod, nodes: NodeRows) -> LowerPriorityPods:
        """The pods on these nodes that have a lower priority than the pod."""
        ...

    def victims(self, pod: Pod, lower: LowerPriorityPods, reprieve_order: IntArray | None = None) -> Victims:
        """The victims on each node, if all pods of lower priority are evicted and then reprieved one by one.

        A pod is a victim if the incoming pod would not fit beside it. Computed for all nodes in vectorized passes,
        where filters allow that. `reprieve_order`: the pods' places, those of a node together; otherwise the most
        important first.
        """
        ...

    def caused_by_others(self, share: float) -> AbstractContextManager[None]:
        """Of the time inside, objects of other namespaces than the pod's are the cause to this share (0 to 1).

        It is left out where the scheduler holds back the pods of namespaces whose attempts take long.
        """
        ...

    def without(self, node: NodeView, pods: Iterable[PlacedPod]) -> AbstractContextManager[Evicted]:
        """Inside the `with`, these pods are evicted from the node."""
        ...

    def fits(self, pod: Pod, node: NodeView) -> bool:
        """Whether every filter would accept the node as things stand now (inside a `without`: without them)."""
        ...

    def refusal(self, pod: Pod, node: NodeView) -> Refusal | None:
        """As `fits`, with the rejection of the first filter that rejects the node.

        Nominated pods of higher or equal priority count as being there, as in the cycle itself.
        """
        ...
