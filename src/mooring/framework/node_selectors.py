"""Selectors of nodes over many rows at once: node affinity terms, label selectors, topology terms.

What they mean for one node stands in `mooring.objects.placement_rules` and `mooring.objects.selectors`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mooring.framework.nodes import NodeRows
from mooring.framework.verdicts import BoolArray
from mooring.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.placement_rules import is_readable
from mooring.objects.selectors import LabelSelector, integer


def where_selector(selector: NodeSelector, nodes: NodeRows, *, by_name: bool = True) -> BoolArray:
    """`selector_matches`, for many nodes; `by_name` false: as if the nodes had no names."""
    mask = np.zeros(len(nodes), bool)
    for term in selector.node_selector_terms:
        mask |= where_term(term, nodes, by_name=by_name)
        if mask.all():
            break
    return mask


def where_term(term: NodeSelectorTerm, nodes: NodeRows, *, by_name: bool = True) -> BoolArray:
    """`term_matches`, for many nodes."""
    if not is_readable(term):
        return np.zeros(len(nodes), bool)
    mask = np.ones(len(nodes), bool)
    for part in term.match_expressions:
        mask &= where_requirement(part.key, part.operator, part.values, nodes)
        if not mask.any():
            return mask
    for field in term.match_fields if by_name else ():
        mask &= _where_field(field, nodes)
    return mask


def _where_field(field: NodeSelectorRequirement, nodes: NodeRows) -> BoolArray:
    """One field of a readable term; a node has no field but its name, and any other reads as empty."""
    [value] = field.values
    is_equal = nodes.where_named((value,)) if field.key == "metadata.name" else np.full(len(nodes), not value)
    return is_equal if field.operator == "In" else ~is_equal


def where_labels(selector: LabelSelector, nodes: NodeRows) -> BoolArray:
    """`LabelSelector.matches`, for many nodes."""
    mask = np.ones(len(nodes), bool)
    for key, operator, values in selector.requirements():
        mask &= where_requirement(key, operator, values, nodes)
    return mask


def where_requirement(key: str, operator: str, values: Sequence[str], nodes: NodeRows) -> BoolArray:
    """`requirement_matches`, for many nodes."""
    match operator:
        case "In":
            return nodes.where_label_in(key, values)
        case "NotIn":
            return ~nodes.where_label_in(key, values)
        case "Exists" | "DoesNotExist":
            is_lacking = nodes.where_label_lacking(key)
            return ~is_lacking if operator == "Exists" else is_lacking
        case "Gt" | "Lt" if len(values) == 1 and (bound := integer(values[0])) is not None:
            numbers, is_number = nodes.label_integers(key)
            return is_number & (numbers > bound if operator == "Gt" else numbers < bound)
    return np.zeros(len(nodes), bool)
