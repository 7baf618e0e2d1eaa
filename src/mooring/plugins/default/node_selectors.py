"""Selectors of nodes over many rows at once: node affinity terms, label selectors, topology terms.

What they mean for one node stands in `mooring.objects.placement_rules` and `mooring.objects.selectors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from mooring.framework import BoolArray, NodeRows
from mooring.objects.core import NodeSelector, NodeSelectorTerm
from mooring.objects.placement_rules import fields_match, is_readable
from mooring.objects.selectors import LabelSelector, requirement_matches


def where_selector(selector: NodeSelector, nodes: NodeRows, *, by_name: bool = True) -> BoolArray:
    """`selector_matches`, for many nodes; `by_name` false: as if the nodes had no names."""
    masks = [where_term(term, nodes, by_name=by_name) for term in selector.node_selector_terms]
    return reduce(np.logical_or, masks, np.zeros(len(nodes), bool))


def where_term(term: NodeSelectorTerm, nodes: NodeRows, *, by_name: bool = True) -> BoolArray:
    """`term_matches`, for many nodes."""
    if not is_readable(term):
        return np.zeros(len(nodes), bool)
    mask = np.ones(len(nodes), bool)
    for part in term.match_expressions:
        mask &= where_requirement(part.key, part.operator, part.values, nodes)
    if term.match_fields and by_name:
        mask &= np.fromiter((fields_match(term, name) for name in nodes.names), bool, len(nodes))
    return mask


def where_labels(selector: LabelSelector, nodes: NodeRows) -> BoolArray:
    """`LabelSelector.matches`, for many nodes."""
    mask = np.ones(len(nodes), bool)
    for key, operator, values in selector.requirements():
        mask &= where_requirement(key, operator, values, nodes)
    return mask


def where_requirement(key: str, operator: str, values: Sequence[str], nodes: NodeRows) -> BoolArray:
    """`requirement_matches`, for many nodes."""
    if operator == "In":
        return nodes.where_label_in(key, values)
    return nodes.where_label(key, _test(key, operator, values))


def _test(key: str, operator: str, values: Sequence[str]) -> Callable[[str | None], bool]:
    """One requirement, as a question about the label's value."""
    return lambda found: requirement_matches(key, operator, values, {} if found is None else {key: found})
