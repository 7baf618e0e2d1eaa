"""The scheduler's cache of the cluster: the columnar node table, standing counts, assumed pods, cheap what-ifs."""

from mooring.state.changes import ChangeLog
from mooring.state.columns import Column
from mooring.state.nominations import NominatedAhead
from mooring.state.pods import StatePodGroups, StatePods
from mooring.state.pods_by_importance import LowerPriorityPods
from mooring.state.state import State
from mooring.state.table import PODS
from mooring.state.views import Rows, RowView
from mooring.state.what_if_rows import Addition, Eviction, EvictionBeside, WhatIfRows

__all__ = [
    "PODS",
    "Addition",
    "ChangeLog",
    "Column",
    "Eviction",
    "EvictionBeside",
    "LowerPriorityPods",
    "NominatedAhead",
    "RowView",
    "Rows",
    "State",
    "StatePodGroups",
    "StatePods",
    "WhatIfRows",
]
