"""The scheduler's cache of the cluster: the columnar node table, standing counts, assumed pods, cheap what-ifs."""

from mooring.state.cached_columns import CachedColumn
from mooring.state.changes import ChangeLog
from mooring.state.lower_priority_requests import NotComputable, RowsAfterEviction
from mooring.state.pods import StatePods
from mooring.state.state import State
from mooring.state.table import PODS
from mooring.state.views import Rows, RowView

__all__ = [
    "PODS",
    "CachedColumn",
    "ChangeLog",
    "NotComputable",
    "RowView",
    "Rows",
    "RowsAfterEviction",
    "State",
    "StatePods",
]
