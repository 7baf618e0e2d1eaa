"""What a pod's spread constraints mean: which pods and which nodes each counts. Decides nothing about a node.

Pods of one workload have the same constraints, so what is read of them is remembered by their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from mooring.base.bounded import BoundedCache
from mooring.base.errors import Fault
from mooring.framework import FeatureGates, NodesWhere, Pod, PodsWhere
from mooring.objects.core import TopologySpreadConstraint
from mooring.objects.placement_rules import required_node_selector
from mooring.objects.pod_templates import TemplateFamily
from mooring.objects.selectors import Labels, Requirement, mistake_in, selects
from mooring.plugins.default.pod_topology_spread.args import HARD, SOFT
from mooring.plugins.default.pod_topology_spread.workloads import Workloads

MOST_CACHED_BYTES = 16 * 1024 * 1024
CONSTRAINT_BYTES = 512
"""About what one takes in memory, besides its text."""
FEW = 16
NO_PODS = PodsWhere(namespaces=frozenset())

_encode = msgspec.msgpack.Encoder().encode


class SpreadConstraint(msgspec.Struct, frozen=True):
    """One constraint of one pod, ready to be counted."""

    key: str
    max_skew: int
    min_domains: int
    selector: tuple[Requirement, ...] | None
    """None selects no pod, () every pod."""
    pods: PodsWhere
    nodes: NodesWhere
    minds_taints: bool

    def selects(self, labels: Labels) -> bool:
        return self.selector is not None and selects(self.selector, labels)


SpreadConstraints = tuple[SpreadConstraint, ...]

T = TypeVar("T")
_Noted: TypeAlias = WeakKeyDictionary[TemplateFamily, T]


class ConstraintReader:
    """Reads the constraints that pods have, by themselves or by default."""

    def __init__(
        self,
        defaults: Sequence[TopologySpreadConstraint],
        workloads: Workloads,
        gates: FeatureGates,
        *,
        defaults_need_every_key: bool,
    ) -> None:
        self._workloads = workloads
        self._defaults = {action: _of(action, defaults) for action in (HARD, SOFT)}
        self._defaults_need_every_key = defaults_need_every_key
        self._match_label_keys = gates.on("MatchLabelKeysInPodTopologySpread")
        self._inclusion_policies = gates.on("NodeInclusionPolicyInPodTopologySpread")
        self._compare_numbers = gates.on("TaintTolerationComparisonOperators")
        self._cache: BoundedCache[tuple[object, ...], SpreadConstraints] = BoundedCache(MOST_CACHED_BYTES)
        # With this reader, not with the pods or their families: those outlive it.
        self._own: dict[str, _Noted[SpreadConstraints]] = {action: WeakKeyDictionary() for action in (HARD, SOFT)}
        self._by_default: dict[str, _Noted[tuple[object, SpreadConstraints]]] = {
            action: WeakKeyDictionary() for action in (HARD, SOFT)
        }
        self._key = object()
        """Of notes on pods."""

    @property
    def hard_per_template(self) -> bool:
        """Whether `hard` is the same for all pods of a template. Defaults depend on their controllers and Services."""
        return not self._defaults[HARD]

    def hard(self, pod: Pod) -> SpreadConstraints:
        """Those that refuse nodes. A selector that cannot be read is a fault, in kube-scheduler's words."""
        return self._read(pod, HARD, "hard")

    def soft(self, pod: Pod) -> SpreadConstraints:
        """Those that only prefer nodes."""
        return self._read(pod, SOFT, "soft")

    def needs_every_key(self, pod: Pod) -> bool:
        """Whether nodes that lack the key of one soft constraint are left out of all of them.

        Not so with the defaults of the system: where nodes have no zone, pods are still spread over hosts.
        """
        return bool(pod.spec.topology_spread_constraints) or self._defaults_need_every_key

    def _read(self, pod: Pod, action: str, kind: str) -> SpreadConstraints:
        if own := pod.spec.topology_spread_constraints:
            # Many take long to encode, dry runs and hints read them often, and a template has little room.
            is_noted_on_pod, family = len(own) > FEW, pod.template.family
            noted = pod.notes.get((self._key, action)) if is_noted_on_pod else self._own[action].get(family)
            if noted is not None:
                return noted
            wanted = _of(action, own)
            if not wanted:
                return ()
            text = _encode((wanted, [[pod.labels.get(key) for key in each.match_label_keys] for each in wanted]))
            nodes = self._nodes_text(pod)
            read = self._cached((pod.namespace, text, nodes), len(text) + len(nodes), pod, wanted, kind)
            if is_noted_on_pod:
                pod.notes.keep((self._key, action), read)
            else:
                self._own[action][family] = read
            return read
        defaults = self._defaults[action]
        if not defaults:
            return ()
        family, version = pod.template.family, self._workloads.version(pod)
        if (known := self._by_default[action].get(family)) is not None and known[0] == version:
            return known[1]
        read = self._defaults_of(pod, action, kind)
        self._by_default[action][family] = version, read
        return read

    def _defaults_of(self, pod: Pod, action: str, kind: str) -> SpreadConstraints:
        selector = self._workloads.selector(pod)
        if not selector:
            return ()
        nodes = self._nodes_text(pod)
        size = len(nodes) + CONSTRAINT_BYTES * len(selector)
        text = (pod.namespace, action, selector, nodes)
        return self._cached(text, size, pod, self._defaults[action], kind, selector)

    def _nodes_text(self, pod: Pod) -> bytes:
        """All of the pod that may decide which nodes count."""
        spec = pod.spec
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        if affinity is None and not spec.node_selector and not spec.tolerations:
            return b""
        return _encode((spec.node_selector, affinity.required if affinity is not None else None, spec.tolerations))

    def _cached(
        self,
        text: tuple[object, ...],
        size: int,
        pod: Pod,
        wanted: Sequence[TopologySpreadConstraint],
        kind: str,
        selector: tuple[Requirement, ...] | None = None,
    ) -> SpreadConstraints:
        known = self._cache.get(text)
        if known is not None:
            return known
        selectors = [selector if selector is not None else self._selector(each, pod, kind) for each in wanted]
        needs_every_key = kind == "hard" or self.needs_every_key(pod)
        keys = tuple(sorted({each.topology_key for each in wanted})) if needs_every_key else ()
        # With a single key, its domains are those of the nodes that have it: no need to name it.
        nodes = Nodes(pod, keys if len(keys) > 1 else (), compare_numbers=self._compare_numbers)
        read = tuple(self._constraint(each, pod, chosen, nodes) for each, chosen in zip(wanted, selectors, strict=True))
        return self._cache.put(text, read, size + CONSTRAINT_BYTES * len(read))

    def _selector(self, constraint: TopologySpreadConstraint, pod: Pod, kind: str) -> tuple[Requirement, ...] | None:
        selector = constraint.label_selector
        if wrong := mistake_in(selector):
            raise Fault(f"obtaining pod's {kind} topology spread constraints: {wrong}")
        if selector is None:
            return None
        own: Iterable[Requirement] = ()
        if self._match_label_keys:
            labels = pod.labels
            own = [(key, "In", (labels[key],)) for key in constraint.match_label_keys if key in labels]
        return tuple(sorted({*selector.requirements(), *own}))

    def _constraint(
        self,
        constraint: TopologySpreadConstraint,
        pod: Pod,
        selector: tuple[Requirement, ...] | None,
        nodes: Nodes,
    ) -> SpreadConstraint:
        minds_affinity, minds_taints = True, False
        if self._inclusion_policies:
            minds_affinity = constraint.node_affinity_policy == "Honor"
            minds_taints = constraint.node_taints_policy == "Honor"
        # kube-scheduler counts no pods for a selector that is empty, although it selects every pod; nor pods that are
        # being deleted. But it ignores both when preemption adds or removes pods in a dry run.
        pods = NO_PODS
        if selector is not None:
            here = frozenset((pod.namespace,))
            pods = PodsWhere(here, (selector,), terminating=False, none=not selector, what_if_counts_all=True)
        on = nodes.where(minds_affinity=minds_affinity, minds_taints=minds_taints)
        min_domains = 1 if constraint.min_domains is None else constraint.min_domains
        return SpreadConstraint(
            constraint.topology_key, constraint.max_skew, min_domains, selector, pods, on, minds_taints
        )


class Nodes:
    """The nodes that the constraints of one pod count: one `NodesWhere` for all constraints of the same policies."""

    def __init__(self, pod: Pod, keys: tuple[str, ...], *, compare_numbers: bool) -> None:
        self._pod = pod
        self._keys = keys
        self._compare_numbers = compare_numbers
        self._known: dict[tuple[bool, bool], NodesWhere] = {}

    def where(self, *, minds_affinity: bool, minds_taints: bool) -> NodesWhere:
        policies = (minds_affinity, minds_taints)
        if policies not in self._known:
            pod = self._pod
            self._known[policies] = NodesWhere(
                keys=self._keys,
                node_selector=tuple(sorted(pod.spec.node_selector.items())) if minds_affinity else (),
                affinity=required_node_selector(pod) if minds_affinity else None,
                tolerations=tuple(pod.spec.tolerations) if minds_taints else None,
                compare_numbers=self._compare_numbers and minds_taints,
            )
        return self._known[policies]


def _of(action: str, constraints: Iterable[TopologySpreadConstraint]) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(each for each in constraints if each.when_unsatisfiable == action)
