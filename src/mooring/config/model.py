"""A loaded configuration: the values that the rest of the scheduler reads, with every default filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mooring.base.errors import Problem
from mooring.framework.args import Args
from mooring.framework.points import Point


@dataclass(frozen=True, slots=True)
class PluginUse:
    """A plugin at an extension point. `weight` counts at score only."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """What a profile enables and disables at one point, or at `multiPoint`."""

    enabled: tuple[PluginUse, ...] = ()
    disabled: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProfileConfiguration:
    """One profile: which plugins run where, in which order, with which arguments."""

    scheduler_name: str
    points: Mapping[Point, tuple[PluginUse, ...]]
    """Every point has an entry; the order is the order in which plugins run."""
    args: Mapping[str, Args]
    """For each plugin in use that takes arguments."""
    used_plugins: tuple[str, ...]
    percentage_of_nodes_to_score: int | None = None
    """Overrides the configuration's where it is set."""
    choices: Mapping[str, PluginChoice] = field(default_factory=dict, compare=False)
    """By point name, merged with the defaults: what `points` follows from, to show what was configured."""


@dataclass(frozen=True)
class LeaderElection:
    leader_elect: bool = True
    explicit: bool = False
    """Whether the file sets `leaderElect`; a default is something to warn about, an explicit value is not."""
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"

    def mistakes(self) -> Iterator[tuple[str, str]]:
        """Inconsistent values: the field, and what is wrong with it."""
        lease, renew, retry = self.lease_duration_seconds, self.renew_deadline_seconds, self.retry_period_seconds
        for name in ("lease_duration_seconds", "renew_deadline_seconds", "retry_period_seconds"):
            if getattr(self, name) <= 0:
                yield name, f"must be greater than zero, got {getattr(self, name):g}s"
        if min(lease, renew, retry) > 0:
            if lease <= renew:
                yield "lease_duration_seconds", f"must be greater than renewDeadline ({renew:g}s), got {lease:g}s"
            if renew <= 1.2 * retry:
                yield (
                    "renew_deadline_seconds",
                    f"must be greater than 1.2 × retryPeriod ({retry:g}s), got {renew:g}s",
                )
        if self.resource_lock != "leases":
            yield "resource_lock", f'resourceLock value must be "leases", got "{self.resource_lock}"'


@dataclass(frozen=True)
class ClientConnection:
    """How to reach the API server. `qps` and `burst` are None where the file does not set them."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float | None = None
    burst: int | None = None


@dataclass(frozen=True)
class ManagedResource:
    name: str
    ignored_by_scheduler: bool = False


@dataclass(frozen=True)
class ExtenderTls:
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


@dataclass(frozen=True)
class Extender:
    """An HTTP service that is called during decisions. With an empty verb it is not called at that step."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: ExtenderTls | None = None
    timeout_seconds: float = 5.0
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True)
class Configuration:
    """A KubeSchedulerConfiguration, complete."""

    profiles: tuple[ProfileConfiguration, ...]
    parallelism: int = 16
    percentage_of_nodes_to_score: int | None = None
    """None: not set, every node is evaluated. An explicit 0 is kube-scheduler's adaptive rule."""
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    client_connection: ClientConnection = field(default_factory=ClientConnection)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    extenders: tuple[Extender, ...] = ()
    """Ignorable ones come last, as kube-scheduler orders them."""


@dataclass(frozen=True)
class Loaded:
    """A configuration that can be used, and what its author should know about it."""

    configuration: Configuration
    warnings: tuple[Problem, ...]
    version: str
    """The version the file was written in: `v1`, `v1beta3`, …"""


@dataclass(frozen=True)
class Converted:
    """A configuration as v1 text, and what was lost or changed on the way."""

    text: str
    warnings: tuple[Problem, ...]
