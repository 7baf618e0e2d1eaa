"""May we do all that a scheduler with this configuration does? The rights are those that the manifests grant.

Each right is one SelfSubjectAccessReview, so that every authorizer of the server — RBAC or anything else —
decides here too. What is missing is shown as the RBAC rules that would grant it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mooring.base.errors import MooringError
from mooring.client import ApiClient
from mooring.client.rights import in_one_line
from mooring.deploy import Right, Rule, rules_of
from mooring.deploy.manifests import AUTHENTICATION_READER
from mooring.doctor.findings import Finding, bad, good, notice, unknown
from mooring.objects.meta import Kind

CHECK = "rights"
ACCESS_REVIEWS = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
SELF_REVIEWS = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
AUTHENTICATION = Right(
    "", "configmaps", "get", "kube-system", "extension-apiserver-authentication", frozenset({"who may read metrics"})
)
"""Granted by a role that every cluster has, so the manifests grant it by a binding and not by a rule."""


async def examine_rights(client: ApiClient, user: str | None, rights: Sequence[Right], remedy: str) -> list[Finding]:
    """`remedy`: the command that writes the missing rules."""
    who = f'"{user}"' if user else "our user"
    try:
        allowed = await asyncio.gather(*(_is_allowed(client, right) for right in rights))
    except MooringError as error:
        to_do = "Bind the user to the ClusterRole system:basic-user, which every cluster has."
        return [unknown(CHECK, f"the rights of {who} cannot be reviewed: {error}", to_do)]
    missing = [right for right, is_allowed in zip(rights, allowed, strict=True) if not is_allowed]
    if not missing:
        return [good(CHECK, f"{who} has all {len(rights)} rights that this configuration needs")]
    optional = rules_of(right for right in missing if right.is_optional)
    needed = rules_of(right for right in missing if not right.is_optional)
    lacks = [
        finding(CHECK, *_lacks(who, namespace, rule))
        for finding, found in ((notice, optional), (bad, needed))
        for namespace, rules in found.items()
        for rule in rules
    ]
    # Once, at the end of what may be a long list.
    return [*lacks[:-1], replace(lacks[-1], to_do=f"{lacks[-1].to_do}\n{remedy}")]


async def own_name(client: ApiClient) -> str | None:
    """The user name by a SelfSubjectReview, which Kubernetes has since 1.28."""
    try:
        review = await client.create(SELF_REVIEWS, {})
        return str(review["status"]["userInfo"]["username"])
    except (MooringError, KeyError):
        return None


async def _is_allowed(client: ApiClient, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes: dict[str, Any] = {"group": right.group, "resource": resource, "verb": right.verb}
    if subresource:
        attributes["subresource"] = subresource
    if right.namespace:
        attributes["namespace"] = right.namespace
    if right.name:
        attributes["name"] = right.name
    review = await client.create(ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}})
    return bool(review.get("status", {}).get("allowed"))


def _lacks(who: str, namespace: str, rule: Rule) -> tuple[str, str]:
    """The message, and what to do."""
    where = f' in namespace "{namespace}"' if namespace else ""
    what = ", ".join(f"{resource}.{rule.group}" if rule.group else resource for resource in rule.resources)
    named = f' "{rule.names[0]}"' if rule.names else ""
    message = f"{who} may not {', '.join(rule.verbs)} {what}{named}{where} (for {', '.join(rule.needed_by)})"
    if rule.names == (AUTHENTICATION.name,):
        return message, f"Bind it to the Role {AUTHENTICATION_READER} in kube-system, which every cluster has."
    role = f'Role in namespace "{namespace}"' if namespace else "ClusterRole"
    return message, f"Add this rule to its {role}: {in_one_line(rule.document())}"
