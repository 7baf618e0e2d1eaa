"""Rights as RBAC writes them: as few rules as name the users of each right, sorted, so that two runs write the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mooring.deploy.rights import Right

_VERB_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete")


@dataclass(frozen=True)
class Rule:
    """A PolicyRule, and the components that need it."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...]
    needed_by: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        written: dict[str, Any] = {"apiGroups": [self.group], "resources": list(self.resources)}
        if self.names:
            written["resourceNames"] = list(self.names)
        return written | {"verbs": list(self.verbs)}


def rules_of(rights: Iterable[Right]) -> dict[str, tuple[Rule, ...]]:
    """The rules for each namespace; those under "" hold everywhere."""
    verbs: dict[tuple[str, str, str, str], set[str]] = {}
    needed_by: dict[tuple[str, str, str, str], set[str]] = {}
    for right in rights:
        where = (right.namespace, right.group, right.name, right.resource)
        verbs.setdefault(where, set()).add(right.verb)
        needed_by.setdefault(where, set()).update(right.needed_by)
    alike: dict[tuple[str, str, str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for where, allowed in sorted(verbs.items()):
        namespace, group, name, resource = where
        key = (namespace, group, name, tuple(sorted(allowed, key=_VERB_ORDER.index)), tuple(sorted(needed_by[where])))
        alike.setdefault(key, []).append(resource)
    found: dict[str, tuple[Rule, ...]] = {}
    for (namespace, group, name, its_verbs, who), resources in alike.items():
        rule = Rule(group, tuple(resources), its_verbs, (name,) if name else (), who)
        found[namespace] = (*found.get(namespace, ()), rule)
    return found
