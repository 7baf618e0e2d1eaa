"""RandomChoice: half of the nodes by chance, and among them the one with the highest random number.

Every draw is a hash of the seed, the pod, the attempt and the node: a decision stays a function of what it is given and
can be taken again, while another attempt draws again. Nothing in the cluster can change a draw, so a pod that no node
was drawn for requests a retry after a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Annotated

from mooring.framework import (
    UNRESOLVABLE,
    Action,
    Args,
    Cycle,
    Diagnosis,
    Hint,
    Meta,
    Node,
    NodeView,
    Plugin,
    Pod,
    PostFilterRefusal,
    Rejection,
    WhatIf,
)

NOT_DRAWN = "node(s) were not drawn"


class RandomChoiceArgs(Args):
    """Arguments of RandomChoice."""

    seed: Annotated[int, Meta(description="Another seed draws other nodes.")] = 0
    retry_seconds: Annotated[
        float, Meta(gt=0, description="How long a pod waits for its next draw when no node was drawn.")
    ] = 1.0


class RandomChoice(Plugin):
    """Choose among half of the nodes by chance."""

    def __init__(self, args: RandomChoiceArgs) -> None:
        self._seed, self._retry_seconds = args.seed, args.retry_seconds

    def events(self) -> Iterable[Hint]:
        return [Hint(Node, Action.ADD)]

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        # Evicting pods would not change the draw.
        return None if self._draw(pod, node, cycle) % 2 == 0 else Rejection(NOT_DRAWN, code=UNRESOLVABLE)

    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> PostFilterRefusal:
        return PostFilterRefusal(retry_after=self._retry_seconds)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return self._draw(pod, node, cycle) // 2 % 100

    def _draw(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        """A number below 2⁶⁴. Its lowest bit is the filter's draw, the rest the score's."""
        drawn_from = f"{self._seed}/{pod.uid}/{cycle.attempt}/{node.name}"
        return int.from_bytes(blake2b(drawn_from.encode(), digest_size=8).digest(), "big")
