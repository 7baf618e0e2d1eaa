"""Access, rules and token reviews. The token is the administrator's, who may do everything; no other users exist."""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod

from mooring.apiserver.documents import Document, part
from mooring.apiserver.negotiation import decode_object
from mooring.apiserver.options import write_options
from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest

ADMINISTRATOR: Document = {
    "username": "mooring-admin",
    "groups": ["system:masters", "system:authenticated"],
}


class _Review(SubresourceHandler, ABC):
    def post(self, call: SubresourceRequest) -> Document:
        review = decode_object(call.body, call.route.row, write_options(call.query).policy)
        review["metadata"] = part(review, "metadata")
        review["status"] = self.status(part(review, "spec"))
        return review

    @abstractmethod
    def status(self, spec: Document) -> Document:
        """The status of a review with this spec."""


class AccessReview(_Review):
    def status(self, spec: Document) -> Document:
        return {"allowed": True, "reason": "the embedded API server allows its token everything"}


class UserAccessReview(_Review):
    """Administrators may do everything; other users do not exist, and may do nothing."""

    def status(self, spec: Document) -> Document:
        if "system:masters" in (spec.get("groups") or ()):
            return {"allowed": True, "reason": "the embedded API server allows its administrator everything"}
        return {"allowed": False, "reason": "the embedded API server knows no user but its administrator"}


class RulesReview(_Review):
    def status(self, spec: Document) -> Document:
        return {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }


class TokenReview(_Review):
    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def status(self, spec: Document) -> Document:
        if hmac.compare_digest(str(spec.get("token", "")).encode(), self._token):
            return {"authenticated": True, "user": ADMINISTRATOR}
        return {"authenticated": False, "user": {}, "error": "invalid bearer token"}


class SelfReview(_Review):
    def status(self, spec: Document) -> Document:
        return {"userInfo": ADMINISTRATOR}


def review_handlers(token: str) -> dict[tuple[str, str], SubresourceHandler]:
    access = AccessReview()
    return {
        ("subjectaccessreviews.authorization.k8s.io", ""): UserAccessReview(),
        ("selfsubjectaccessreviews.authorization.k8s.io", ""): access,
        ("localsubjectaccessreviews.authorization.k8s.io", ""): UserAccessReview(),
        ("selfsubjectrulesreviews.authorization.k8s.io", ""): RulesReview(),
        ("tokenreviews.authentication.k8s.io", ""): TokenReview(token),
        ("selfsubjectreviews.authentication.k8s.io", ""): SelfReview(),
    }
