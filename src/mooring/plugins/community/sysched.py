"""SySched: put pods together that may make the same system calls.

A system call that other pods of its node may make, and a pod may not, is extraneous to that pod: a hole in the kernel
there concerns it all the same. The raw score counts them, for the pod on that node and for the pods there; fewer are
better. The system calls of a pod are those of its SeccompProfiles, objects of the Security Profiles Operator.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any

import msgspec

from mooring.base.computed import computed_once
from mooring.framework import (
    Args,
    CustomResource,
    Cycle,
    Meta,
    NodeView,
    Objects,
    Plugin,
    Pod,
    ResourcePart,
)
from mooring.objects.meta import KindColumn, KubeObject
from mooring.objects.wire import Wire
from mooring.plugins.community.compatibility import Compatibility
from mooring.plugins.community.go_arithmetic import FewestBest

ANNOTATION = "seccomp.security.alpha.kubernetes.io"
ALLOWED = ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG")
NO_CALLS = 2**63 - 1
"""The raw score on every node of a pod whose system calls are not known."""


class SeccompSyscall(ResourcePart):
    """System calls, and what happens when a container makes one."""

    action: str = ""
    names: list[str] = []
    args: list[Any] = []
    errno_ret: Any = None


class SeccompProfileSpec(ResourcePart):
    default_action: str = ""
    syscalls: list[SeccompSyscall] = []
    base_profile_name: str = ""
    architectures: list[str] = []
    flags: list[str] = []
    listener_path: str = ""
    listener_metadata: str = ""


class SeccompProfile(
    CustomResource,
    group="security-profiles-operator.x-k8s.io",
    version="v1beta1",
    plural="seccompprofiles",
    approved="unapproved, the kind of the Security Profiles Operator",
    short_names=("sp",),
    columns=(
        KindColumn("Status", "string", ".status.status"),
        KindColumn("Age", "date", ".metadata.creationTimestamp"),
    ),
):
    """Which system calls containers may make. Most fields are for the operator, and not read here."""

    spec: SeccompProfileSpec = msgspec.field(default_factory=SeccompProfileSpec)
    status: dict[str, Any] = {}


class SeccompReference(Wire):
    type: str = ""
    localhost_profile: str | None = None


class SeccompContext(Wire):
    seccomp_profile: SeccompReference | None = None


class SeccompContainer(Wire):
    security_context: SeccompContext | None = None


class SeccompPodSpec(Wire):
    security_context: SeccompContext | None = None
    containers: list[SeccompContainer] = []


class SeccompPodStatus(Wire):
    phase: str = ""


ProfileName = tuple[str, str]
"""Namespace and name."""


class SeccompPod(KubeObject, version="v1", plural="pods", kind="Pod"):
    """What SySched reads of a pod."""

    spec: SeccompPodSpec = msgspec.field(default_factory=SeccompPodSpec)
    status: SeccompPodStatus = msgspec.field(default_factory=SeccompPodStatus)

    @computed_once
    def profiles(self) -> tuple[ProfileName, ...]:
        """The profiles of the pod, its containers, and of the first annotation about them."""
        contexts = [self.spec.security_context, *(each.security_context for each in self.spec.containers)]
        paths = [
            context.seccomp_profile.localhost_profile or ""
            for context in contexts
            if context is not None
            and context.seccomp_profile is not None
            and context.seccomp_profile.type == "Localhost"
        ]
        paths += [value for key, value in sorted(self.annotations.items()) if ANNOTATION in key][:1]
        return tuple(name for name in map(_profile_name, paths) if name is not None)


def _profile_name(path: str) -> ProfileName | None:
    """Of a path `…/<namespace>/<name>.json`."""
    parts = path.split("/")
    if len(parts) < 2:
        return None
    namespace, name = parts[-2], parts[-1].removesuffix(PurePosixPath(parts[-1]).suffix)
    return (namespace, name) if namespace and name else None


class SySchedArgs(Args):
    """Arguments of SySched."""

    default_profile_namespace: Annotated[str, Meta(description="Namespace of the profile of pods without any.")] = (
        "default"
    )
    default_profile_name: Annotated[str, Meta(description="Name of the profile of pods without any.")] = "all-syscalls"
    compatibility: Compatibility = "mooring"


class SystemCalls:
    """The system calls of profiles as bits of a number: sets of them are compared for every pod on every node."""

    def __init__(self, profiles: Objects[SeccompProfile]) -> None:
        self._profiles = profiles
        self._version: int | None = None
        self._bits: dict[str, int] = {}
        self._of_profile: dict[ProfileName, int] = {}

    def of(self, profiles: tuple[ProfileName, ...]) -> int:
        """Those of all these profiles."""
        if self._version != self._profiles.version:
            self._version = self._profiles.version
            self._of_profile = {
                (profile.namespace, profile.name): self._allowed(profile) for profile in self._profiles.all()
            }
        calls = 0
        for name in profiles:
            calls |= self._of_profile.get(name, 0)
        return calls

    def _allowed(self, profile: SeccompProfile) -> int:
        calls = 0
        for syscall in profile.spec.syscalls:
            if syscall.action in ALLOWED:
                for name in syscall.names:
                    calls |= self._bits.setdefault(name, 1 << len(self._bits))
        return calls


class SySched(Plugin):
    """Favour nodes whose pods may make the same system calls as the pod."""

    normalizer = FewestBest()

    def __init__(self, args: SySchedArgs, pods: Objects[SeccompPod], profiles: Objects[SeccompProfile]) -> None:
        self._default = ((args.default_profile_namespace, args.default_profile_name),)
        self._is_compatible = args.compatibility == "scheduler-plugins"
        self._pods, self._calls = pods, SystemCalls(profiles)

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        calls = self._calls_of(self._pods.get(pod.name, pod.namespace))
        if not calls:
            return NO_CALLS
        there = [self._calls_of(placed) for placed in self._pods_on(node)]
        if not there:
            return 0
        host = 0
        for each in there:
            host |= each
        together = host | calls
        return (host & ~calls).bit_count() + sum((together & ~each).bit_count() for each in there)

    def _calls_of(self, pod: SeccompPod | None) -> int:
        """Those of its profiles; without any, those of the default profile."""
        return (self._calls.of(pod.profiles) if pod is not None else 0) or self._calls.of(self._default)

    def _pods_on(self, node: NodeView) -> list[SeccompPod | None]:
        if not self._is_compatible:
            return [self._pods.get(placed.name, placed.namespace) for placed in node.pods]
        # scheduler-plugins knows running pods only, and of several with one name the first.
        by_name: dict[str, SeccompPod] = {}
        for placed in node.pods:
            pod = self._pods.get(placed.name, placed.namespace)
            if pod is not None and pod.status.phase == "Running":
                by_name.setdefault(placed.name, pod)
        return list(by_name.values())
