"""A decision's evidence in words: where a pod went and by which scores, or why no node would do."""

from mooring.explain.words import in_full, in_one_line

__all__ = ["in_full", "in_one_line"]
