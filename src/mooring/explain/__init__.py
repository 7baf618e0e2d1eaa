"""Evidence as text: the chosen node and its scores, why no node is feasible, what is nearest, and what would help."""

from mooring.explain.node_words import node_in_full
from mooring.explain.owner_words import owner_in_full
from mooring.explain.pending_words import pending_in_full
from mooring.explain.recording_words import since_recorded
from mooring.explain.why_not_words import why_not_in_full
from mooring.explain.words import in_full, in_one_line, summary, waited

__all__ = [
    "in_full",
    "in_one_line",
    "node_in_full",
    "owner_in_full",
    "pending_in_full",
    "since_recorded",
    "summary",
    "waited",
    "why_not_in_full",
]
