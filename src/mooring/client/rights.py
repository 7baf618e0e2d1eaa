"""Parses a Forbidden (403) response, and builds the RBAC rule that would have allowed the request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mooring.base.errors import ApiError

_CANNOT = re.compile(r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"')


def rule(group: str, resource: str, verbs: Sequence[str]) -> str:
    """A rule of a Role or ClusterRole that allows this, as `in_one_line` shows it."""
    return in_one_line({"apiGroups": [group], "resources": [resource], "verbs": verbs})


def in_one_line(policy_rule: Mapping[str, Sequence[str]]) -> str:
    """The rule as YAML that can be pasted into a Role's list of rules."""

    def shown(values: Sequence[str]) -> str:
        return "[" + ", ".join(f'"{value}"' for value in values) + "]"

    return "{" + ", ".join(f"{field}: {shown(values)}" for field, values in policy_rule.items()) + "}"


class Forbidden(ApiError):
    """The request is forbidden. As text, with the rule that would allow it where the server names the right."""

    def __str__(self) -> str:
        missing = missing_rule(self.message)
        return f"{self.message}; this RBAC rule would allow it: {missing}" if missing else self.message


def missing_rule(message: str) -> str | None:
    """The rule that is missing, parsed from the message of Kubernetes' authorizers; None where it has another form."""
    found = _CANNOT.search(message)
    return rule(found["group"], found["resource"], [found["verb"]]) if found else None
