"""All extenders, in the order they are called: ignorable ones come last (the configuration sorted them).

Filters are called one after another, each with the nodes that are left; scores concurrently; preemption one after
another; one of them binds. An ignorable extender that fails is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Raw

from mooring.base.errors import PluginFault
from mooring.base.log import Log
from mooring.client.fence import WriteFence
from mooring.config.model import Extender
from mooring.engine import ExtenderScores
from mooring.framework import UNRESOLVABLE, Candidate, Pod, Rejection
from mooring.framework.preemption import importance
from mooring.scheduler.extenders import wire
from mooring.scheduler.extenders.client import ExtenderClient, ExtenderFault
from mooring.scheduler.extenders.documents import Documents
from mooring.state import State

NO_REASON = Rejection(code=UNRESOLVABLE)
"""A node that an extender dropped without a reason: kube-scheduler's status for a node without a reason."""

_log = Log("extender")


class Extenders:
    """Those that are configured."""

    def __init__(self, configured: Iterable[Extender], documents: Documents, fence: WriteFence | None = None) -> None:
        """`fence` holds bindings back that they would make for us."""
        self._all = [ExtenderClient(each, fence) for each in configured]
        self._documents = documents

    def concern(self, pod: Pod) -> bool:
        """Whether any of them takes part in scheduling this pod."""
        return self.filter_or_prioritize(pod) or any(each.config.preempt_verb for each in self._interested(pod))

    def filter_or_prioritize(self, pod: Pod) -> bool:
        """Whether any of them filters or scores nodes for this pod."""
        return any(each.config.filter_verb or each.config.prioritize_verb for each in self._interested(pod))

    async def filter(self, pod: Pod, names: Sequence[str]) -> dict[str, Rejection]:
        """The nodes that they reject. Raises where one that is not ignorable fails."""
        left, refused = list(names), dict[str, Rejection]()
        for extender in self._interested(pod):
            if not extender.config.filter_verb or not left:
                continue
            try:
                response = await extender.filter(self._documents.of_pod(pod), left, self._nodes(extender, left))
                passed = accepted(extender, response, left)
            except PluginFault as fault:
                self._unless_ignorable(extender, fault, pod)
                continue
            refused |= refusals(response, set(left) - passed)
            left = [name for name in left if name in passed]
        return refused

    async def prioritize(self, pod: Pod, names: Sequence[str]) -> tuple[ExtenderScores, ...]:
        """The scores of each. One that fails scores nothing, whether it is ignorable or not."""
        called_extenders = [each for each in self._interested(pod) if each.config.prioritize_verb]
        responses = await asyncio.gather(*(self._scores(each, pod, names) for each in called_extenders))
        called: dict[str, int] = {}
        scores_of_all = []
        for extender, scores in zip(called_extenders, responses, strict=True):
            times = called[extender.name] = called.get(extender.name, 0) + 1
            label = extender.name if times == 1 else f"{extender.name}#{times}"
            if scores is not None:
                scores_of_all.append(ExtenderScores(label, extender.config.weight, scores))
        return tuple(scores_of_all)

    async def preempt(self, pod: Pod, candidates: Sequence[Candidate], state: State) -> list[Candidate]:
        """The preemption candidates that they accept: fewer nodes, or other victims there."""
        left = list(candidates)
        for extender in self._interested(pod):
            if not extender.config.preempt_verb or not left:
                continue
            try:
                response = await extender.preempt(self._victims_request(extender, pod, left))
                left = [
                    candidate
                    for node, victims in response.items()
                    if (candidate := _candidate(extender, node, victims, state)) is not None
                ]
            except PluginFault as fault:
                self._unless_ignorable(extender, fault, pod)
        return left

    def binder_of(self, pod: Pod) -> str | None:
        """The first that binds this pod, if one does."""
        return next((each.name for each in self._interested(pod) if each.config.bind_verb), None)

    async def bind(self, pod: Pod, node: str) -> bool:
        """Whether one of them has bound the pod; False: the bind plugins' turn."""
        for extender in self._interested(pod):
            if not extender.config.bind_verb:
                continue
            try:
                await extender.bind(pod, node)
                return True
            except PluginFault as fault:
                self._unless_ignorable(extender, fault, pod)
        return False

    async def close(self) -> None:
        for each in self._all:
            await each.close()

    def _interested(self, pod: Pod) -> Iterator[ExtenderClient]:
        return (each for each in self._all if each.is_interested(pod))

    def _nodes(self, extender: ExtenderClient, names: Iterable[str]) -> list[Raw]:
        """The whole nodes, for one that does not know them; a node that was deleted meanwhile is left out."""
        if extender.config.node_cache_capable:
            return []
        return [document for name in names if (document := self._documents.nodes.get(name)) is not None]

    async def _scores(self, extender: ExtenderClient, pod: Pod, names: Sequence[str]) -> Mapping[str, int] | None:
        try:
            scores = await extender.prioritize(self._documents.of_pod(pod), names, self._nodes(extender, names))
        except PluginFault as fault:
            _log.v(5).info(
                "Failed to run extender's priority function. No score given by this extender.",
                error=fault,
                pod=pod,
                extender=extender.name,
            )
            return None
        if debug := _log.v(10):
            for node, score in scores.items():
                debug.info("Extender scored node for pod", pod=pod, extender=extender.name, node=node, score=score)
        return scores

    def _victims_request(self, extender: ExtenderClient, pod: Pod, candidates: Sequence[Candidate]) -> bytes:
        document = self._documents.of_pod(pod)
        if extender.config.node_cache_capable:
            uids = {each.node: ([victim.uid for victim in each.victims], each.budget_violations) for each in candidates}
            return wire.meta_preemption_args(document, uids)
        kept = self._documents.pods
        whole = {
            each.node: (
                [found for victim in each.victims if (found := kept.get(victim.uid)) is not None],
                each.budget_violations,
            )
            for each in candidates
        }
        return wire.preemption_args(document, whole)

    def _unless_ignorable(self, extender: ExtenderClient, fault: PluginFault, pod: Pod) -> None:
        if not extender.config.ignorable:
            raise fault
        _log.info(
            "Skipping extender as it returned error and has ignorable flag set",
            extender=extender.name,
            pod=pod,
            err=fault,
        )


def accepted(extender: ExtenderClient, response: wire.FilterResult, sent: Sequence[str]) -> set[str]:
    """The nodes that pass. nodeCacheCapable extenders return names, others whole nodes."""
    given = response.node_names if extender.config.node_cache_capable else None
    passed = set((response.nodes or ()) if given is None else given)
    if unknown := passed.difference(sent):
        raise ExtenderFault(
            f'extender "{extender.name}" claims a filtered node "{min(unknown)}" which is not found in the input node '
            "list"
        )
    return passed


def refusals(response: wire.FilterResult, out: Iterable[str]) -> dict[str, Rejection]:
    """Why each of these nodes is rejected; an unresolvable rejection takes precedence."""
    rejections: dict[str, Rejection] = {}
    for name in out:
        if (reason := response.failed_and_unresolvable.get(name)) is not None:
            rejections[name] = Rejection(reason, code=UNRESOLVABLE)
        elif (reason := response.failed.get(name)) is not None:
            rejections[name] = Rejection(reason)
        else:
            rejections[name] = NO_REASON
    return rejections


def _candidate(extender: ExtenderClient, node: str, victims: wire.MetaVictims, state: State) -> Candidate | None:
    view = state.node(node)
    if view is None:
        raise ExtenderFault(f'extender {extender.name} would preempt on node "{node}", which does not exist')
    if not victims.uids:
        if extender.config.ignorable:
            _log.v(2).info(
                "Ignored node for which the extender didn't report victims", node=node, extender=extender.name
            )
            return None
        raise ExtenderFault(f'extender {extender.name}: expected at least one victim pod on node "{node}"')
    for uid in victims.uids:
        if uid not in view.placed:
            raise ExtenderFault(
                f"extender: {extender.name} claims to preempt pod (UID: {uid}) on node: {node}, but the pod is not "
                "found on that node"
            )
    pods = sorted((view.placed[uid] for uid in set(victims.uids)), key=importance)
    return Candidate(node, tuple(pods), victims.budget_violations)
