"""What we believe about the cluster: the columnar node table, standing counts, assumed pods, cheap what-ifs."""

from mooring.state.changes import ChangeLog
from mooring.state.state import State
from mooring.state.views import Rows, RowView

__all__ = ["ChangeLog", "RowView", "Rows", "State"]
