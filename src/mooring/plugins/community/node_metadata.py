"""NodeMetadata: favour nodes by a number or a time in one of their labels or annotations.

Numbers count as whole numbers, times by their age in whole seconds. A node without the key, or with a text that
cannot be read, is worse than any other: it has 0, the others 1 to 100.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Annotated

import numpy as np

from mooring.framework import Args, Clock, Cycle, IntArray, Meta, NodeRows, NodeView, Plugin, Pod
from mooring.framework.normalizers import HIGHEST_SCORE
from mooring.plugins.community.go_arithmetic import quotients, wrapped
from mooring.plugins.community.go_time_layout import RFC3339, BadLayout, GoTimeLayout

UNREADABLE = -(2**63)
"""The raw score of a node whose metadata is missing or cannot be read."""
LOWEST_READABLE = 1

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_SOURCES, _TYPES = ("Label", "Annotation"), ("Number", "Timestamp")
_STRATEGIES = {"Highest": "Number", "Lowest": "Number", "Newest": "Timestamp", "Oldest": "Timestamp"}


class NodeMetadataArgs(Args):
    """Arguments of NodeMetadata."""

    metadata_key: Annotated[str, Meta(description="The key of the label or annotation; required.")] = ""
    metadata_source: Annotated[str, Meta(description="Label or Annotation.")] = ""
    metadata_type: Annotated[str, Meta(description="Number or Timestamp.")] = ""
    scoring_strategy: Annotated[str, Meta(description="Highest or Lowest number; Newest or Oldest time.")] = ""
    timestamp_format: Annotated[str, Meta(description="How times are written, as a Go layout; RFC 3339 if empty.")] = ""

    def mistakes(self) -> Iterable[tuple[str, str]]:
        def invalid(value: str, why: str) -> str:
            return f'Invalid value: "{value}": {why}'

        if not self.metadata_key:
            yield "metadataKey", invalid("", "metadataKey cannot be empty")
        if self.metadata_source not in _SOURCES:
            why = 'metadataSource must be either "Label" or "Annotation"'
            yield "metadataSource", invalid(self.metadata_source, why)
        if self.metadata_type not in _TYPES:
            yield "metadataType", invalid(self.metadata_type, 'metadataType must be either "Number" or "Timestamp"')
        wanted = _STRATEGIES.get(self.scoring_strategy)
        if wanted is None:
            why = 'scoringStrategy must be one of "Highest", "Lowest", "Newest", or "Oldest"'
            yield "scoringStrategy", invalid(self.scoring_strategy, why)
        elif self.metadata_type in _TYPES and wanted != self.metadata_type:
            one, other = (name for name, kind in _STRATEGIES.items() if kind == wanted)
            why = f'scoringStrategy "{one}" and "{other}" are only valid for metadataType "{wanted}"'
            yield "scoringStrategy", invalid(self.scoring_strategy, why)
        if self.metadata_type == "Timestamp":
            try:
                GoTimeLayout(self.timestamp_format or RFC3339)
            except BadLayout as error:
                yield "timestampFormat", str(error)


class NodeMetadata(Plugin):
    """Favour nodes by a number or a time in a label or annotation."""

    def __init__(self, args: NodeMetadataArgs, clock: Clock) -> None:
        self._key, self._is_label = args.metadata_key, args.metadata_source == "Label"
        self._layout = GoTimeLayout(args.timestamp_format or RFC3339) if args.metadata_type == "Timestamp" else None
        self._sign = -1 if args.scoring_strategy in ("Lowest", "Newest") else 1
        self._clock = clock

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return self._raw((node.labels if self._is_label else node.annotations).get(self._key), self._clock.now())

    def score_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> IntArray:
        now = self._clock.now()
        if self._is_label:
            return nodes.label_numbers(self._key, lambda text: self._raw(text, now))
        raw = (self._raw(node.annotations.get(self._key), now) for node in nodes)
        return np.fromiter(raw, np.int64, len(nodes))

    def normalize(self, pod: Pod, nodes: NodeRows, scores: IntArray, cycle: Cycle) -> IntArray:
        is_readable = scores != UNREADABLE
        if not is_readable.any():
            return np.zeros_like(scores)
        readable = scores[is_readable]
        lowest, highest = int(readable.min()), int(readable.max())
        normalized = np.zeros_like(scores)
        span = wrapped(highest - lowest)
        above = quotients((readable - lowest) * (HIGHEST_SCORE - LOWEST_READABLE), span) if span else 0
        normalized[is_readable] = above + LOWEST_READABLE
        return normalized

    def _raw(self, text: str | None, now: float) -> int:
        if text is None:
            return UNREADABLE
        if self._layout is not None:
            seconds = self._layout.seconds(text)
            return UNREADABLE if seconds is None else self._sign * math.trunc(now - seconds)
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        # Go's conversion of what does not fit gives the number that stands for unreadable.
        return self._sign * math.trunc(number) if abs(number) < 2**63 else UNREADABLE
