"""The cluster that `explain` and `why-not` decide on: a file, or one that runs, and the scheduler's configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mooring.base.documents import written
from mooring.base.errors import ApiError, OperatorMistake, did_you_mean
from mooring.cli.cluster_source import listed
from mooring.cli.common import gates_option, load, plugins_option, registry_with
from mooring.cli.output import print_json, print_lines, print_yaml

if TYPE_CHECKING:
    from mooring.client import ApiClient, Connection
    from mooring.config import Configuration
    from mooring.framework.gates import FeatureGates
    from mooring.framework.registry import Registry
    from mooring.objects import Pod
    from mooring.simulator import Cluster
    from mooring.why import Recomputation
    from mooring.why.pod_document import DecidesBy

F = TypeVar("F", bound=Callable[..., Any])
FORBIDDEN, NOT_FOUND = 403, 404
SCHEDULERS_CONFIGURATION = "the scheduler's configuration"


class ExplainedSource(NamedTuple):
    """Of the command line: the cluster, and how it is decided."""

    file: str | None
    kubeconfig: str | None
    context: str | None
    config_file: str | None
    plugins: tuple[str, ...]
    gates: FeatureGates

    def deciding_by(
        self, scheduler: DecidesBy, profile: str | None = None
    ) -> tuple[ExplainedSource, dict[str, Any] | None, Sequence[str]]:
        """As that scheduler decides, unless the command line has it otherwise: with its gates and its plugin files.

        Also its configuration (`profile`: only of this one, if it has it), and which plugins are not run here, and why.
        """
        from mooring.cli.scheduler_plugins import scheduler_plugins

        source, configuration = self.with_gates(scheduler.gates), scheduler.configuration
        if configuration is None or self.config_file is not None:
            return source, configuration, ()
        own = [each for each in configuration.get("profiles", ()) if each.get("schedulerName") == profile]
        if own:
            configuration = {**configuration, "profiles": own}
        known = self.registry()
        wanted = [name for name in scheduler.plugin_paths if name not in known and _is_used(name, configuration)]
        plugins = scheduler_plugins(scheduler.plugin_paths, wanted)
        return source._replace(plugins=(*self.plugins, *plugins.paths)), configuration, plugins.refused

    def with_gates(self, changed: Mapping[str, bool]) -> ExplainedSource:
        """With the feature gates of the scheduler that runs, unless the command line sets any."""
        from mooring.framework.gate_table import GATES
        from mooring.framework.gates import FeatureGates

        known = {name: on for name, on in changed.items() if name in GATES}  # it may be of another version
        return self._replace(gates=FeatureGates(known)) if known and not self.gates.changed() else self

    def connection(self) -> Connection:
        from mooring.cli.kubeconfig_file import connection_here
        from mooring.client import find_connection

        if self.context is not None:
            return find_connection(kubeconfig=self.kubeconfig, context=self.context)
        return connection_here(self.kubeconfig)

    def recomputation(
        self, cluster: Cluster, configuration: dict[str, Any] | None = None, connection: Connection | None = None
    ) -> Recomputation:
        """Decides on this cluster: with the configuration of --config, else with the one of a scheduler that runs.

        With the connection of a cluster that runs, plugins fetch once what they read of other systems.
        """
        from mooring.why import Recomputation, fetch_outside_data

        registry = self.registry()
        loaded, outside = self.loaded(configuration, registry), None
        if connection is not None:
            outside = fetch_outside_data(connection, cluster, loaded, registry, self.gates)
        return Recomputation(cluster, loaded, registry, self.gates, outside)

    def read_live(self, connection: Connection, configuration: dict[str, Any] | None = None) -> Cluster:
        """As the API server shows it: only lists are requested, of all kinds that the plugins read."""
        registry = self.registry()
        return listed(connection, [self.loaded(configuration, registry)], registry, "mooring explain")

    def registry(self) -> Registry:
        return registry_with(self.plugins)

    def loaded(self, configuration: dict[str, Any] | None, registry: Registry) -> Configuration:
        """The configuration of --config, else this one; None: the default one."""
        if self.config_file is not None or configuration is None:
            return load(self.config_file, registry, self.gates)
        return self.of_scheduler(configuration, registry)

    def of_scheduler(self, configuration: dict[str, Any], registry: Registry) -> Configuration:
        """The configuration that a scheduler has in force."""
        from mooring.config import load_configuration

        text = written(configuration)
        return load_configuration(
            text, source=SCHEDULERS_CONFIGURATION, registry=registry, gates=self.gates
        ).configuration

    def read_file(self) -> Cluster:
        from mooring.simulator import Cluster

        assert self.file is not None
        return Cluster.read(self.file)


def _is_used(plugin: str, configuration: dict[str, Any]) -> bool:
    """Whether a profile names it, at any point."""
    sets = [points for each in configuration.get("profiles", ()) for points in (each.get("plugins") or {}).values()]
    return any(use.get("name") == plugin for each in sets for use in each.get("enabled") or ())


def source_options(command: F) -> F:
    """The command gets `source` and `namespace`."""
    return cluster_and_configuration_options(
        click.option("-n", "--namespace", metavar="NAME", help="Namespace of the pod.  [default: the kubeconfig's]")(
            command
        )
    )


def cluster_and_configuration_options(command: F) -> F:
    """The command gets `source`."""

    @functools.wraps(command)
    def with_source(
        *arguments: Any,
        cluster_file: str | None,
        kubeconfig: str | None,
        context: str | None,
        config_file: str | None,
        plugins: tuple[str, ...],
        gates: FeatureGates,
        **options: Any,
    ) -> Any:
        if cluster_file is not None and (kubeconfig or context):
            raise click.UsageError("--cluster is a file; leave out --kubeconfig and --context, or --cluster.")
        return command(
            *arguments,
            source=ExplainedSource(cluster_file, kubeconfig, context, config_file, plugins, gates),
            **options,
        )

    wrapped: Any = with_source
    for option in (
        gates_option,
        plugins_option,
        click.option(
            "--config",
            "config_file",
            metavar="FILE",
            help="The KubeSchedulerConfiguration to decide with.  [default: the scheduler's that runs here, or the "
            "default profile]",
        ),
        click.option("--cluster", "cluster_file", metavar="FILE", help="A cluster file or a snapshot instead."),
        click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one."),
        click.option(
            "--kubeconfig", metavar="FILE", help="The cluster.  [default: $KUBECONFIG, ./mooring.kubeconfig, …]"
        ),
    ):
        wrapped = option(wrapped)
    result: F = wrapped
    return result


POD_KINDS, NODE_KINDS = ("pod", "pods", "po"), ("node", "nodes", "no")


def pod_named(text: str, namespace: str | None) -> tuple[str | None, str]:
    """Namespace and name of `web`, `shop/web` or `pod/web`, as kubectl prints it."""
    from mooring.why.owner_kinds import OWNER_KINDS

    kind, is_prefixed, name = text.partition("/")
    if is_prefixed and name and kind in POD_KINDS:
        return namespace, name
    if text and not is_prefixed:
        return namespace, text
    is_of_another_kind = kind.lower() in (*OWNER_KINDS, *NODE_KINDS) or "." in kind
    if not name or is_of_another_kind or namespace is not None:
        raise OperatorMistake(f'"{text}" is no pod; name a pod as NAME, NAMESPACE/NAME or pod/NAME.')
    return kind, name


async def live_pod(client: ApiClient, connection: Connection, namespace: str, name: str) -> Pod:
    """The pod, or which names are near, or which right is missing."""
    from mooring.objects import Pod

    try:
        return await client.get_as(Pod, name, namespace)
    except ApiError as error:
        if error.code == FORBIDDEN:
            raise OperatorMistake(
                f'you may not read pods in namespace "{namespace}" on {connection.address}: {error.message}. Choose '
                "another namespace with -n; a Role that allows get and list of pods there would be needed."
            ) from error
        if error.code != NOT_FOUND:
            raise
        near = await _near(client, namespace, name)
        raise OperatorMistake(
            f'there is no pod "{name}" in namespace "{namespace}" on {connection.address}.{near or OTHER_NAMESPACE}'
        ) from error


OTHER_NAMESPACE = " Give another namespace with -n."


async def _near(client: ApiClient, namespace: str, name: str) -> str:
    from mooring.objects import Pod

    try:
        listed = [item["metadata"]["name"] for item in await client.list(Pod.KIND, namespace)]
    except ApiError:
        return ""
    near = nearest_names(name, listed) or await _elsewhere(client, name)
    return near or ("" if listed else await _near_namespace(client, namespace))


async def _elsewhere(client: ApiClient, name: str) -> str:
    """The namespaces that have a pod of this name, as far as this user may list them."""
    from mooring.objects import Pod

    try:
        listed = await client.list(Pod.KIND, field_selector=f"metadata.name={name}")
    except ApiError:
        return ""
    return in_namespaces(item["metadata"]["namespace"] for item in listed)


async def _near_namespace(client: ApiClient, namespace: str) -> str:
    """For a namespace without pods: whether it exists, and which is near."""
    from mooring.objects.core import Namespace
    from mooring.why.owners import near_namespace

    try:
        return near_namespace(namespace, [item["metadata"]["name"] for item in await client.list(Namespace.KIND)])
    except ApiError:
        return ""


def nearest_names(name: str, known: Iterable[str]) -> str:
    """` Did you mean "web-7d4-x"?`: by letters, or because a name begins so."""
    names = sorted(known)
    beginning = [each for each in names if each.startswith(f"{name}-")]
    if beginning:
        more = f" or {len(beginning) - 3} more" if len(beginning) > 3 else ""
        return f" There are {', '.join(beginning[:3])}{more}." if len(beginning) > 1 else f" There is {beginning[0]}."
    return did_you_mean(name, names)


def in_namespaces(namespaces: Iterable[str]) -> str:
    """` There is one in namespace "shop": choose it with -n shop.`, or nothing where there is none."""
    known = sorted(namespaces)
    if not known:
        return ""
    named = ", ".join(f'"{each}"' for each in known[:3])
    return f" There is one in namespace {named}: choose it with -n {known[0]}."


def pod_in(cluster: Cluster, source: ExplainedSource, namespace: str, name: str) -> Pod:
    """The pod of a file, or which names are near."""
    found = next((pod for pod in cluster.pods if (pod.namespace, pod.name) == (namespace, name)), None)
    if found is not None:
        return found
    near = nearest_names(name, (pod.name for pod in cluster.pods if pod.namespace == namespace))
    near = near or in_namespaces(pod.namespace for pod in cluster.pods if pod.name == name)
    if not near:
        from mooring.why.owners import near_namespace

        near = near_namespace(namespace, (pod.namespace for pod in cluster.pods))
    raise OperatorMistake(
        f'there is no pod "{name}" in namespace "{namespace}" in {source.file} (without those that have ended).'
        f"{near or OTHER_NAMESPACE}"
    )


def print_document(found: dict[str, Any], output: str, text: Callable[[], str]) -> None:
    """In the form that is wanted."""
    if output == "json":
        print_json(found)
    elif output == "yaml":
        print_yaml(written(found))
    else:
        print_lines(text(), are_values_visible=True)
