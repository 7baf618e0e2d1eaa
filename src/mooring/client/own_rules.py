"""What this account may do in all namespaces, by one request: to spare an API server those that it would refuse.

Each refusal is a line in the server's audit log, which operators watch. The rules may be incomplete (a webhook
decides), and a rule of one namespace looks like one of all: then a request is made, and its response counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mooring.base.errors import ApiError
from mooring.objects.meta import Kind

if TYPE_CHECKING:
    from mooring.client.api import ApiClient

RULES_REVIEWS = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)
NAMESPACE = "default"
"""The review is of one namespace, with the rules for all of them."""


IsAllowed = Callable[[Kind, str], bool]
"""Whether a verb on a kind may be allowed; False: it is certainly refused."""


async def read_own_rules(client: ApiClient) -> IsAllowed:
    """The rules as they are now."""
    try:
        review = await client.create(RULES_REVIEWS, {"spec": {"namespace": NAMESPACE}})
    except ApiError:
        return lambda _kind, _verb: True
    status: dict[str, Any] = review.get("status") or {}
    if status.get("incomplete"):
        return lambda _kind, _verb: True
    rules = [rule for rule in status.get("resourceRules") or () if not rule.get("resourceNames")]

    def is_allowed(kind: Kind, verb: str) -> bool:
        return any(
            _has(rule, "verbs", verb) and _has(rule, "apiGroups", kind.group) and _has(rule, "resources", kind.plural)
            for rule in rules
        )

    return is_allowed


def _has(rule: dict[str, Any], field: str, value: str) -> bool:
    return not {"*", value}.isdisjoint(rule.get(field) or ())
