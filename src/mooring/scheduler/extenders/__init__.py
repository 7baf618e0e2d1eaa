"""Extenders: HTTP services that take part in decisions.

`wire` is requests and responses, `documents` the objects as the API server wrote them, `client` one extender,
`chain` all of them in order, `extended_decision` a decision with them.
"""

from mooring.scheduler.extenders.chain import Extenders
from mooring.scheduler.extenders.documents import Documents
from mooring.scheduler.extenders.extended_decision import decide_with

__all__ = ["Documents", "Extenders", "decide_with"]
