"""Explanations for users who may not see every namespace: pods of the others are not named.

A decision depends on all pods of a cluster, so evidence names them: victims of a preemption, pods to delete. Such names
are replaced, and changes that are about such a pod are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

HIDDEN = "(a pod that you may not see)"
_KEY = re.compile(r"(?<![\w./-])([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)")
_OPTION = re.compile(r"(?:-n|--namespace)[ =]'?([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)")


def redacted(document: Any, hidden: Collection[str]) -> Any:
    """A copy without pods of these namespaces."""
    return _redacted(document, frozenset(hidden)) if hidden else document


def _redacted(value: Any, hidden: frozenset[str]) -> Any:
    if isinstance(value, str):
        return _KEY.sub(lambda found: HIDDEN if found[1] in hidden else found[0], value)
    if isinstance(value, list | tuple):
        return [_redacted(each, hidden) for each in value]
    if isinstance(value, dict):
        return {
            _redacted(key, hidden): [_redacted(each, hidden) for each in part if not _is_about(each, hidden)]
            if key == "changes" and isinstance(part, list)
            else _redacted(part, hidden)
            for key, part in value.items()
        }
    return value


def _is_about(change: Any, hidden: frozenset[str]) -> bool:
    """Whether a proposed change names a hidden pod."""
    texts = [each for each in change.values() if isinstance(each, str)] if isinstance(change, dict) else [str(change)]
    return any(found[1] in hidden for text in texts for pattern in (_KEY, _OPTION) for found in pattern.finditer(text))
