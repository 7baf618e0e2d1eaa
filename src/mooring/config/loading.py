"""From the text of a KubeSchedulerConfiguration to a `Configuration`: read, converted to v1, defaulted, checked.

All mistakes of a file are reported at once, each with its field path, its line and what would be right.
"""

from __future__ import annotations

from mooring.base.documents import Tree, read_tree, written
from mooring.base.errors import did_you_mean
from mooring.config.extenders import read_extenders
from mooring.config.fields import Fields
from mooring.config.model import ClientConnection, Configuration, Converted, LeaderElection, Loaded
from mooring.config.plugin_args import GROUP, VERSIONS
from mooring.config.problems import Problems
from mooring.config.profiles import ProfileReader, percentage_of_nodes
from mooring.config.upgrade import upgrade
from mooring.framework.gates import FeatureGates
from mooring.framework.registry import Registry

KIND = "KubeSchedulerConfiguration"


def load_configuration(text: str, *, source: str, registry: Registry, gates: FeatureGates | None = None) -> Loaded:
    """Load a file. Raises OperatorMistake with every problem; `source` is what messages call the file."""
    problems = Problems(source)
    _, loaded = _load(text, source, registry, gates or FeatureGates(), problems)
    return loaded


def default_configuration(registry: Registry, gates: FeatureGates | None = None) -> Configuration:
    """The configuration without a file."""
    text = written({"apiVersion": f"{GROUP}/v1", "kind": KIND})
    return load_configuration(text, source="the default configuration", registry=registry, gates=gates).configuration


def convert(text: str, *, source: str, registry: Registry, gates: FeatureGates | None = None) -> Converted:
    """The same configuration in v1, checked as such. A file in v1 is returned as it is, comments and all."""
    problems = Problems(source)
    tree, loaded = _load(text, source, registry, gates or FeatureGates(), problems)
    return Converted(text if loaded.version == "v1" else written(tree.plain()), loaded.warnings)


def _load(text: str, source: str, registry: Registry, gates: FeatureGates, problems: Problems) -> tuple[Tree, Loaded]:
    tree = read_tree(text, source)
    version = _version(tree, problems)
    problems.raise_if_any()
    if version != "v1":
        upgrade(tree, version, registry, problems)
    configuration = _configuration(tree, registry, gates, problems)
    problems.raise_if_any()
    return tree, Loaded(configuration, problems.warnings, version)


def _version(tree: Tree, problems: Problems) -> str:
    """The version the file is written in."""
    readable = ", ".join(f"{GROUP}/{version}" for version in VERSIONS)
    if tree.value is None:
        problems.error(tree, f"is empty; it must hold a {KIND}")
        return ""
    fields = Fields(tree, problems)
    if not fields.is_mapping:
        return ""
    kind, api_version = fields.text("kind"), fields.text("apiVersion")
    if kind == "Policy":
        problems.error(tree.fields["kind"], f"Policy files are no longer read; write profiles in a {KIND}")
        return ""
    if kind is not None and kind != KIND:
        problems.error(tree.fields["kind"], f'must be "{KIND}", got "{kind}".{did_you_mean(kind, [KIND])}')
    elif tree.get("kind") is None:
        problems.error(tree, f'Required value: "{KIND}"', field="kind")
    if tree.get("apiVersion") is None:
        problems.error(tree, f"Required value: one of {readable}", field="apiVersion")
    elif api_version is not None:
        group, _, version = api_version.rpartition("/")
        if group == GROUP and version in VERSIONS:
            return version
        hint = did_you_mean(api_version, [f"{GROUP}/{each}" for each in VERSIONS])
        problems.error(tree.fields["apiVersion"], f'must be one of {readable}; got "{api_version}".{hint}')
    return ""


def _configuration(tree: Tree, registry: Registry, gates: FeatureGates, problems: Problems) -> Configuration:
    root = Fields(tree, problems)
    root.take("apiVersion"), root.take("kind")
    extenders = read_extenders(root.items("extenders"), problems)
    ignored = [
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    profiles = ProfileReader(registry, gates, problems, ignored).read(root)
    profiling = root.truth("enableProfiling")
    contention = root.truth("enableContentionProfiling")
    is_profiling = True if profiling is None else profiling
    initial, longest = _backoff(root, problems)
    configuration = Configuration(
        profiles=profiles,
        parallelism=_parallelism(root, problems),
        percentage_of_nodes_to_score=percentage_of_nodes(root, problems),
        pod_initial_backoff_seconds=initial,
        pod_max_backoff_seconds=longest,
        leader_election=_leader_election(root.section("leaderElection"), problems),
        client_connection=_client_connection(root.section("clientConnection"), problems),
        enable_profiling=is_profiling,
        enable_contention_profiling=is_profiling if contention is None else contention,
        delay_cache_until_active=root.truth("delayCacheUntilActive") or False,
        extenders=extenders,
    )
    root.finish()
    return configuration


def _parallelism(root: Fields, problems: Problems) -> int:
    parallelism = root.whole("parallelism")
    if parallelism is None:
        return 16
    if parallelism <= 0:
        at = root.tree.fields["parallelism"]
        problems.error(at, f"should be an integer value greater than zero, got {parallelism}")
    return parallelism


def _backoff(root: Fields, problems: Problems) -> tuple[int, int]:
    initial, longest = (
        root.whole("podInitialBackoffSeconds", bits=64),
        root.whole("podMaxBackoffSeconds", bits=64),
    )
    if initial is not None and initial <= 0:
        problems.error(root.tree.fields["podInitialBackoffSeconds"], f"must be greater than 0, got {initial}")
    initial_seconds = 1 if initial is None else initial
    longest_seconds = 10 if longest is None else longest
    if longest_seconds < initial_seconds:
        at = root.tree.get("podMaxBackoffSeconds") or root.tree.get("podInitialBackoffSeconds") or root.tree
        problems.error(
            Tree(None, "podMaxBackoffSeconds", at.line),
            f"must be greater than or equal to PodInitialBackoffSeconds ({initial_seconds}), got {longest_seconds}"
            f"{' by default' if longest is None else ''}",
        )
    return initial_seconds, longest_seconds


_ELECTION_FIELDS = {
    "lease_duration_seconds": "leaseDuration",
    "renew_deadline_seconds": "renewDeadline",
    "retry_period_seconds": "retryPeriod",
    "resource_lock": "resourceLock",
}


def _leader_election(fields: Fields, problems: Problems) -> LeaderElection:
    elect = fields.truth("leaderElect")
    standard = LeaderElection()
    # A duration of zero reads as not given, as upstream's defaulting has it.
    election = LeaderElection(
        leader_elect=standard.leader_elect if elect is None else elect,
        explicit=elect is not None,
        lease_duration_seconds=fields.duration("leaseDuration") or standard.lease_duration_seconds,
        renew_deadline_seconds=fields.duration("renewDeadline") or standard.renew_deadline_seconds,
        retry_period_seconds=fields.duration("retryPeriod") or standard.retry_period_seconds,
        resource_lock=fields.text("resourceLock") or standard.resource_lock,
        resource_name=fields.text("resourceName") or standard.resource_name,
        resource_namespace=fields.text("resourceNamespace") or standard.resource_namespace,
    )
    fields.finish()
    if election.leader_elect:
        for name, message in election.mistakes():
            problems.error_at(fields.tree, _ELECTION_FIELDS[name], message)
    return election


def _client_connection(fields: Fields, problems: Problems) -> ClientConnection:
    qps, burst = fields.number("qps"), fields.whole("burst")
    connection = ClientConnection(
        kubeconfig=fields.text("kubeconfig") or "",
        accept_content_types=fields.text("acceptContentTypes") or "",
        content_type=fields.text("contentType") or ClientConnection.content_type,
        # Zero means not set, as it does upstream.
        qps=qps or None,
        burst=burst or None,
    )
    fields.finish()
    if burst is not None and burst < 0:
        problems.error(fields.tree.fields["burst"], f"must be non-negative, got {burst}")
    return connection
