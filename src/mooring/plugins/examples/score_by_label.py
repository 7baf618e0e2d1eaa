"""ScoreByLabel: favour nodes with the higher number in a label.

The highest number among the feasible nodes becomes 100, the others in proportion. A node without the label counts 0,
and so does one whose label is negative or no number; the latter is logged once for each node and value.
"""

from __future__ import annotations

import re
from typing import Annotated

from mooring.framework import Args, Cycle, IntArray, Log, Meta, NodeRows, NodeView, Plugin, Pod, Reads, ToMax

LARGEST = 2**63 // 1000
"""Larger numbers count as this one: scaling them to 100 would overflow 64 bits."""


class ScoreByLabelArgs(Args):
    """Arguments of ScoreByLabel."""

    label_key: Annotated[str, Meta(description="The label that holds the number.")] = "score-by-label"


class ScoreByLabel(Plugin):
    """Favour nodes with the higher number in a label."""

    reads = Reads.NODE

    def __init__(self, args: ScoreByLabelArgs, log: Log) -> None:
        self._key, self._log = args.label_key, log
        self._reported: set[tuple[str, str]] = set()
        log.info(f"[ScoreByLabelArgs] args received. LabelKey: {self._key}")

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        number = self._number(node)
        if detail := self._log.v(6):
            detail.info(f"[ScoreByLabel] Label score for node {node.name} is {self._key} = {number}")
        return number

    def normalize(self, pod: Pod, nodes: NodeRows, scores: IntArray, cycle: Cycle) -> IntArray:
        """As `normalizer = ToMax()` would, and log the result."""
        final = ToMax().scale(scores, int(scores.max()))
        if detail := self._log.v(6):
            pairs = " ".join(f"{{{name} {score}}}" for name, score in zip(nodes.names, final.tolist(), strict=True))
            detail.info(f"[ScoreByLabel] Nodes final score: [{pairs}]")
        return final

    def _number(self, node: NodeView) -> int:
        text = node.labels.get(self._key)
        if text is None:
            return 0
        if re.fullmatch(r"[+-]?[0-9]+", text):
            return min(max(int(text), 0), LARGEST)
        if (node.name, text) not in self._reported:
            self._reported.add((node.name, text))
            self._log.warning(
                "[ScoreByLabel] Label is no whole number, counts 0", node=node.name, label=self._key, value=text
            )
        return 0
