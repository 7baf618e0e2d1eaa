"""A profile as the engine runs it: the plugin instances of one scheduler name, by extension point and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from mooring.framework import Plugin, Point, Reads, Rejections
from mooring.framework.normalizers import HIGHEST_SCORE


class Form(Enum):
    """Which form of a rule runs where it has both: node by node, or many nodes at once."""

    FASTER = "faster"
    PLAIN = "plain"
    VECTOR = "vector"


READ_BY_ROW = (Reads.NODE, Reads.REQUESTED, Reads.PODS)
"""What plugins read whose result for a node is the same until that node changes."""
OUT = -(2**30)
"""The total of a node that cannot be chosen: less than any sum of scores that has room in 32 bits."""

Rule = Callable[..., Iterable[Rejections]]
"""A filter's rule for many nodes at once."""


class FilterPlugin:
    """A filter plugin and the forms its rule has."""

    __slots__ = ("at_once", "is_cacheable", "name", "one_by_one", "plugin")

    def __init__(self, plugin: Plugin, form: Form = Form.FASTER) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.one_by_one: Callable[..., Any] | None = getattr(plugin, "filter", None)
        self.at_once: Rule | None = getattr(plugin, "filter_nodes", None)
        if self.one_by_one is not None and self.at_once is not None:
            self.one_by_one = None if form is Form.VECTOR else self.one_by_one
            self.at_once = None if form is Form.PLAIN else self.at_once
        self.is_cacheable = _is_cacheable(plugin, form)


class ScorePlugin:
    """A score plugin, the forms its rule has, and its weight in this profile."""

    __slots__ = (
        "at_once",
        "is_cacheable",
        "is_normalized",
        "name",
        "normalize",
        "normalized_constants",
        "normalizer",
        "one_by_one",
        "plugin",
        "weight",
    )

    def __init__(self, plugin: Plugin, weight: int, form: Form = Form.FASTER) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.weight = weight
        self.one_by_one: Callable[..., Any] | None = getattr(plugin, "score", None)
        self.at_once: Callable[..., Any] | None = getattr(plugin, "score_nodes", None)
        if form is Form.PLAIN and self.one_by_one is not None:
            self.at_once = None
        self.normalize: Callable[..., Any] | None = getattr(plugin, "normalize", None)
        self.normalizer = plugin.normalizer
        self.is_normalized = self.normalize is not None or self.normalizer is not None
        self.normalized_constants: dict[int, int] = {}
        """What the normalizer makes of a score that all nodes have."""
        self.is_cacheable = _is_cacheable(plugin, form)


def _is_cacheable(plugin: Plugin, form: Form) -> bool:
    """Whether its results for pods of one signature are the same on a node that has not changed."""
    return form is Form.FASTER and plugin.reads in READ_BY_ROW and callable(getattr(plugin, "sign", None))


class Profile:
    """The plugins of one scheduler name. Built by the scheduler from its configuration."""

    def __init__(
        self,
        name: str,
        points: Mapping[Point, Sequence[tuple[Plugin, int]]],
        percentage_of_nodes_to_score: int | None = None,
        form: Form = Form.FASTER,
        *,
        is_extended: bool = False,
    ) -> None:
        self.name = name
        self.points = {point: tuple(instances) for point, instances in points.items()}
        self._at = {point: tuple(plugin for plugin, _ in instances) for point, instances in self.points.items()}
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        """None: evaluate every node. 0: kube-scheduler's adaptive share. Otherwise that share."""
        self.is_extended = is_extended
        """Extenders filter or score beside its plugins, so that one feasible node is not enough."""
        self.pre_filters = self.at(Point.PRE_FILTER)
        self.filterers = tuple(FilterPlugin(plugin, form) for plugin in self.at(Point.FILTER))
        self.post_filters = self.at(Point.POST_FILTER)
        self.pre_scores = self.at(Point.PRE_SCORE)
        # kube-scheduler takes a weight of 0 for "not set".
        self.scorers = tuple(
            ScorePlugin(plugin, weight or 1, form) for plugin, weight in self.points.get(Point.SCORE, ())
        )

        self.has_small_totals = sum(abs(scorer.weight) for scorer in self.scorers) * HIGHEST_SCORE < -OUT
        """Whether the sum of a node's weighted scores has room in 32 bits."""

        cacheable = [each.plugin for each in self.filterers if each.is_cacheable]
        cacheable += [each.plugin for each in self.scorers if each.is_cacheable]
        self.signed = tuple({plugin.name: plugin for plugin in cacheable}.values())
        """The plugins whose results may be cached by what they sign of the pod."""

        self.per_template = tuple(
            plugin for plugin in self.plugins if plugin.per_template and callable(getattr(plugin, "sign", None))
        )
        """The plugins whose states may be shared by the pods of a template."""
        self.per_family = tuple(plugin for plugin in self.per_template if not plugin.reads_requests)
        """Those of them whose states may be shared by pods that differ in what they request."""

    def at(self, point: Point) -> tuple[Any, ...]:
        """The plugins at a point, in order. That each has the point's methods was checked when it was registered."""
        return self._at.get(point, ())

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """Every instance once, in order of first appearance."""
        return tuple({id(plugin): plugin for instances in self.points.values() for plugin, _ in instances}.values())

    def __repr__(self) -> str:
        return f"<profile {self.name}>"
