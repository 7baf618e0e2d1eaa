"""A decision's evidence as text: the chosen node and its scores, or why no node is feasible."""

from mooring.explain.words import in_full, in_one_line

__all__ = ["in_full", "in_one_line"]
