"""Filters in a what-if about many nodes at once: each node without some of its pods, or with others.

Where a filter cannot run so, a what-if about one node after the other decides.
"""

from __future__ import annotations

from typing import NamedTuple, cast

from mooring.engine.cycle import EngineCycle
from mooring.engine.evaluation import run_rule_at_once
from mooring.engine.profile import READ_BY_ROW, FilterPlugin, Rule
from mooring.engine.rejected import Step
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import IntArray, Plugin, Reads
from mooring.state import Rows, WhatIfRows

IN_WHAT_IF = "filter_nodes_in_what_if"
"""The form of a rule for a plugin whose PreFilter reads pods on nodes."""


class Passing(NamedTuple):
    """The positions of nodes that filters passed, in a what-if about many nodes."""

    places: IntArray
    are_certain: bool = True
    """Whether every filter could run."""


class WhatIfFilters:
    """The filters of a cycle in what-ifs about many nodes at once."""

    def __init__(self, cycle: EngineCycle) -> None:
        self._cycle = cycle
        pre_filters = cycle.profile.pre_filters
        self.all = tuple(each for each in cycle.profile.filterers if each.name not in cycle.skipped_filters)
        self.of_pods = tuple(each for each in self.all if _reads(each, pre_filters) is not Reads.NODE)
        """Those whose result may change when pods are evicted or added."""
        self._rules = {each.name: _rule_in_what_if(each, pre_filters) for each in self.all}
        self.are_states_valid = all(
            plugin.name in cycle.skipped_filters
            or (
                plugin.name in cycle.filter_states and (not plugin.pre_filter_reads_pods or hasattr(plugin, IN_WHAT_IF))
            )
            for plugin in pre_filters
        )
        """Whether no PreFilter has to run again in the what-if, and none rejected the pod."""

    def run(self, nodes: WhatIfRows, *, of_pods_only: bool = False) -> tuple[list[Step], Passing]:
        """The rejections of these nodes, filter by filter, and the nodes that are left."""
        steps: list[Step] = []
        for filterer in self.of_pods if of_pods_only else self.all:
            if not len(nodes):
                break
            rule = self._rules[filterer.name]
            if rule is None:
                return steps, Passing(nodes.places, are_certain=False)
            try:
                step = run_rule_at_once(filterer, rule, self._cycle, cast(Rows, nodes))
            except (KeyboardInterrupt, AttemptTimeout):
                raise
            except BaseException:  # the what-if about one node reports it
                return steps, Passing(nodes.places, are_certain=False)
            if step is not None:
                steps.append(step)
                nodes = nodes.where(~step.mask)
        return steps, Passing(nodes.places)


def _rule_in_what_if(filterer: FilterPlugin, pre_filters: tuple[Plugin, ...]) -> Rule | None:
    """The form of the filter that evaluates many nodes in a what-if; None: there is none."""
    if filterer.at_once is None:
        return None
    rule: Rule | None = getattr(filterer.plugin, IN_WHAT_IF, None)
    if rule is None and _reads(filterer, pre_filters) in READ_BY_ROW:
        rule = filterer.at_once
    return rule


def _reads(filterer: FilterPlugin, pre_filters: tuple[Plugin, ...]) -> Reads:
    """What the filter's result depends on; anything, if its PreFilter state depends on pods."""
    plugin = filterer.plugin
    if plugin.pre_filter_reads_pods and plugin in pre_filters:
        return Reads.ANYTHING
    return plugin.reads
