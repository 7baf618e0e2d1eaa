"""Subresources, and resources that are not stored (reviews, bindings). `subresource_handlers` is the table."""

from __future__ import annotations

from mooring.apiserver.subresources.base import SubresourceHandler, SubresourceRequest
from mooring.apiserver.subresources.binding import BindingHandler
from mooring.apiserver.subresources.eviction import EvictionHandler
from mooring.apiserver.subresources.finalize import FinalizeHandler
from mooring.apiserver.subresources.reviews import review_handlers
from mooring.apiserver.subresources.scale import ScaleHandler
from mooring.apiserver.subresources.unsupported import NeedsContainer, Unsupported

__all__ = ["SubresourceHandler", "SubresourceRequest", "special_handlers"]


def subresource_handlers(token: str) -> dict[tuple[str, str], SubresourceHandler]:
    """By storage key and subresource; "*" stands for any kind, no subresource for the resource itself."""
    binding, scale = BindingHandler(), ScaleHandler()
    return {
        ("pods", "binding"): binding,
        ("bindings", ""): binding,
        ("pods", "eviction"): EvictionHandler(),
        ("namespaces", "finalize"): FinalizeHandler(),
        ("*", "scale"): scale,
        ("pods", "log"): NeedsContainer("simulated containers have no output, so there are no logs"),
        ("pods", "exec"): NeedsContainer("simulated containers run no processes, so nothing can be executed in them"),
        ("pods", "attach"): NeedsContainer("simulated containers run no processes, so there is nothing to attach to"),
        ("pods", "ephemeralcontainers"): NeedsContainer(
            "simulated containers run no processes, so a debug container could not look at any"
        ),
        ("serviceaccounts", "token"): Unsupported(
            "the embedded API server issues no tokens: the one in its kubeconfig is the only one it accepts"
        ),
        ("pods", "portforward"): NeedsContainer("simulated containers listen on no ports"),
        ("pods", "proxy"): NeedsContainer("simulated containers serve no requests"),
        ("services", "proxy"): NeedsContainer("simulated containers serve no requests"),
        ("nodes", "proxy"): NeedsContainer("simulated nodes have no kubelet to proxy to"),
        **review_handlers(token),
    }
