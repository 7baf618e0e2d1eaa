"""`mooring explain POD`: what the scheduler that decided has recorded, and the pod decided again on the cluster now.

Without a pod: all that are pending, by cause.

Without a scheduler of this user that decided the pod, the recomputation is all: it explains pods of kube-scheduler and
pods in files, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mooring.base.errors import ApiError, Fault, MooringError, OperatorMistake
from mooring.base.visible import visible_values
from mooring.cli.explained_cluster import (
    NODE_KINDS,
    NOT_FOUND,
    SCHEDULERS_CONFIGURATION,
    ExplainedSource,
    live_pod,
    pod_in,
    pod_named,
    print_document,
    source_options,
)
from mooring.cli.output import print_line
from mooring.cli.schedulers_here import schedulers_here

if TYPE_CHECKING:
    from mooring.client import ApiClient, Connection
    from mooring.objects import Pod
    from mooring.recording import Recording
    from mooring.simulator import Cluster

SHOWN_NODES = 5
"""Rows of the table of scores, unless it is wide."""


def _one_word(ctx: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> str | None:
    if len(words) > 1:
        joined = "/".join(words) if len(words) == 2 else "deployment/web"
        raise click.UsageError(f'POD is one word: write "{joined}" for an owner or a node, or name one pod.', ctx)
    return words[0] if words else None


@click.command()
@click.argument("pod", nargs=-1, callback=_one_word, metavar="[POD]")
@source_options
@click.option("-A", "--all-namespaces", is_flag=True, help="All pending pods, grouped by cause.")
@click.option(
    "--recorded",
    is_flag=True,
    help="Only what the scheduler and the API server have recorded; nothing is listed and nothing decided again.",
)
@click.option(
    "--recording",
    metavar="FILE",
    help="What `mooring run --record` wrote: what has changed since the pod was bound.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How to print; wide: the scores of all nodes.",
)
def explain(
    pod: str | None,
    source: ExplainedSource,
    namespace: str | None,
    all_namespaces: bool,
    recorded: bool,
    recording: str | None,
    output: str,
) -> None:
    """Explain why POD runs where it does, or why it is still pending.

    POD is also the owner of pods, as deployment/web: its pods are grouped by cause; or node/NAME: what runs there, and
    which pending pods it would take. Without POD, -A shows all pending pods by cause, -n those of a namespace. With a
    scheduler of yours on this machine, its own decision is shown; in any case the pod is decided again on the cluster
    as it is now, nothing is written, and what would help is verified so.

    \b
    Example:
      mooring explain web-0 --namespace shop
      mooring explain -A
      mooring explain deployment/web
      mooring explain node/node-7
      mooring explain web-0 --cluster prod.snapshot -o wide
    """
    if pod is None:
        if recorded or recording is not None:
            raise click.UsageError(f"{'--recorded' if recorded else '--recording'} is about one pod: name it.")
        if not all_namespaces and namespace is None:
            raise click.UsageError("Name a pod; or give -A for all pending pods, -n NAME for those of a namespace.")
        _explain_pending(source, None if all_namespaces else namespace, output)
        return
    if all_namespaces:
        raise click.UsageError("-A shows all pending pods: leave out the pod, or name its namespace with -n.")
    if recording is not None and recorded:
        raise click.UsageError("--recording compares with the cluster now, and --recorded lists none: give one.")
    if recording is not None and (_node_named(pod) or _owner_named(pod)) is not None:
        raise click.UsageError("--recording is about one pod: what has changed since it was bound.")
    if (node := _node_named(pod)) is not None:
        if recorded:
            raise click.UsageError("--recorded is about one pod: what the scheduler knows of it.")
        _explain_node(source, node, output)
        return
    if (owner := _owner_named(pod)) is not None:
        if recorded:
            raise click.UsageError("--recorded is about one pod: what the scheduler knows of it.")
        _explain_owner(source, owner, namespace, output)
        return
    if source.file is not None and recorded:
        raise click.UsageError("--recorded is about a scheduler that runs; a file has none.")
    since = _read_recording(recording)
    if source.file is not None:
        found, problem = _look_into_file(pod, namespace, source, since, output), None
    else:
        found, problem = _look(pod, namespace, source, recorded, since, output)
    _print(found, output)
    if problem is not None:
        raise Fault(problem)


def _print(found: dict[str, Any], output: str) -> None:
    from mooring.explain import in_full, since_recorded
    from mooring.why.pod_document import of_this_version, with_summary

    def text() -> str:
        with of_this_version():
            shown = visible_values(found)
            return in_full(shown, is_wide=output == "wide") + since_recorded(shown)

    print_document(with_summary(found), output, text)


# All pending pods


def _explain_pending(source: ExplainedSource, namespace: str | None, output: str) -> None:
    from mooring.explain import pending_in_full
    from mooring.why import explain_pending
    from mooring.why.pending import PendingCause, causes_of
    from mooring.why.pod_document import DecidesBy

    connection = None if source.file is not None else source.connection()
    here = schedulers_here(connection)
    causes: dict[str, PendingCause] = {}
    notes: list[str] = []
    pods: list[Pod] = []
    # Each scheduler's pods by its own configuration; those of no scheduler here by that of the first.
    for scheduler in here.deciding or (DecidesBy(),):
        of_scheduler, configuration, refused = source.deciding_by(scheduler)
        notes += refused
        cluster = source.read_file() if connection is None else of_scheduler.read_live(connection, configuration)
        pods = [
            pod
            for pod in cluster.pods
            if not pod.spec.node_name and not pod.is_terminating and namespace in (None, pod.namespace)
        ]
        with of_scheduler.recomputation(cluster, configuration, connection) as recomputation:
            profiles = recomputation.profiles
            own = [pod for pod in pods if pod.spec.scheduler_name in profiles or pod.key not in causes]
            causes |= causes_of(recomputation, own, here.served)
            notes += [note for note in (*cluster.notes, *recomputation.notes) if note not in notes]
    for note in notes:
        print_line(f"Warning: {note}", err=True)
    found = explain_pending(causes, pods, namespace, here.queued)
    print_document(found, output, lambda: pending_in_full(visible_values(found), is_wide=output == "wide"))


# Nodes


def _node_named(text: str) -> str | None:
    kind, _, name = text.partition("/")
    return name if name and kind.lower() in NODE_KINDS else None


def _explain_node(source: ExplainedSource, name: str, output: str) -> None:
    from mooring.explain import node_in_full
    from mooring.why import explain_node

    connection = None if source.file is not None else source.connection()
    source, configuration, _ = source.deciding_by(schedulers_here(connection).first())
    cluster = source.read_file() if connection is None else source.read_live(connection, configuration)
    with source.recomputation(cluster, configuration, connection) as recomputation:
        found = explain_node(recomputation, name)
        found["notes"] = [*cluster.notes, *recomputation.notes]
    _warn(cluster)
    print_document(found, output, lambda: node_in_full(visible_values(found), is_wide=output == "wide"))


# Owners


def _owner_named(text: str) -> tuple[tuple[str, str], str] | None:
    """The kind and name of `deployment/web` or `deployment.apps/web`; None: it is no such thing."""
    kind, is_prefixed, name = text.partition("/")
    if not is_prefixed:
        return None
    from mooring.why.owner_kinds import OWNER_KINDS

    known = OWNER_KINDS.get(kind.partition(".")[0].lower())
    return (known, name) if known is not None else None


def _explain_owner(
    source: ExplainedSource, owner: tuple[tuple[str, str], str], namespace: str | None, output: str
) -> None:
    from mooring.explain import owner_in_full
    from mooring.why import explain_owner

    connection = None if source.file is not None else source.connection()
    here = schedulers_here(connection)
    source, configuration, _ = source.deciding_by(here.first())
    if connection is None:
        cluster = source.read_file()
    else:
        namespace = namespace or connection.namespace
        cluster = source.read_live(connection, configuration)
    kind, name = owner
    with source.recomputation(cluster, configuration, connection) as recomputation:
        found = explain_owner(recomputation, kind, namespace or "default", name, here.served)
        found["notes"] = [*cluster.notes, *recomputation.notes]
    _warn(cluster)
    print_document(found, output, lambda: owner_in_full(visible_values(found)))


def _warn(cluster: Cluster) -> None:
    for note in cluster.notes:
        print_line(f"Warning: {note}", err=True)


# One pod


def _read_recording(path: str | None) -> Recording | None:
    """Before anything is decided: a file that is no recording is a mistake of the command line."""
    if path is None:
        return None
    from mooring.recording import Recording

    recording = Recording.read(path)
    for note in recording.notes:
        print_line(f"Note: {note}.", err=True)
    return recording


def _since(recording: Recording | None, pod: Pod, cluster: Cluster) -> dict[str, Any]:
    """What a recording knows of a pod that has a node."""
    if recording is None:
        return {}
    from mooring.replay import changes_since

    if not pod.spec.node_name:
        print_line("Warning: --recording shows what has changed since a pod was bound; this one is pending.", err=True)
        return {}
    since = changes_since(recording, pod, cluster)
    if since is None:
        print_line(f"Warning: the recording has no decision that gave {pod.key} its node.", err=True)
    return {} if since is None else {"sinceRecorded": since}


def _look_into_file(
    text: str, namespace: str | None, source: ExplainedSource, recording: Recording | None, output: str
) -> dict[str, Any]:
    from mooring.why.pod_document import known

    cluster = source.read_file()
    namespace, name = pod_named(text, namespace)
    pod = pod_in(cluster, source, namespace or "default", name)
    found = known(pod) | {"isFile": True} | _since(recording, pod, cluster)
    found = _decided_again(found, cluster, source, pod, output)
    group = _group_in(cluster, pod)
    return found if group is None else found | {"podGroup": group}


def _group_in(cluster: Cluster, pod: Pod) -> dict[str, Any] | None:
    import msgspec

    from mooring.objects.pod_groups import PodGroup
    from mooring.objects.resource import ResourceClaim
    from mooring.why.pod_groups import group_of

    documents = cluster.documents.get((PodGroup.KIND.api_version, PodGroup.KIND.kind), ())
    groups = [msgspec.convert(document, PodGroup) for document in documents]
    claims = [each for each in cluster.objects_of(ResourceClaim) if isinstance(each, ResourceClaim)]
    group = next((each for each in groups if (each.namespace, each.name) == (pod.namespace, pod.pod_group_name)), None)
    return group_of(pod, group, cluster.pods, claims)


async def _live_group(client: ApiClient, pod: Pod, *, with_members: bool) -> dict[str, Any] | None:
    """The group of the pod; None: it names none, or it cannot be read."""
    import msgspec

    from mooring.objects import Pod
    from mooring.objects.pod_groups import PodGroup
    from mooring.objects.resource import ResourceClaim
    from mooring.why.pod_groups import group_of

    if (name := pod.pod_group_name) is None:
        return None
    try:
        group = await client.get_as(PodGroup, name, pod.namespace)
    except ApiError as error:
        if error.code != NOT_FOUND:
            return None  # the pod is explained without it
        group = None
    try:
        listed = await client.list(Pod.KIND, pod.namespace) if with_members else None
    except ApiError:
        listed = None
    try:
        has_claims = group is not None and bool(group.spec.resource_claims)
        claims = await client.list(ResourceClaim.KIND, pod.namespace) if has_claims else None
    except ApiError:
        claims = None
    return group_of(
        pod,
        group,
        None if listed is None else [msgspec.convert(each, Pod) for each in listed],
        None if claims is None else [msgspec.convert(each, ResourceClaim) for each in claims],
    )


def _decided_again(
    found: dict[str, Any],
    cluster: Cluster,
    source: ExplainedSource,
    pod: Pod,
    output: str,
    configuration: dict[str, Any] | None = None,
    connection: Connection | None = None,
) -> dict[str, Any]:
    from mooring.why.pod_document import explained

    with source.recomputation(cluster, configuration, connection) as recomputation:
        notes = [*cluster.notes, *recomputation.notes]
        return explained(recomputation, pod, found, SHOWN_NODES if output == "text" else None, notes)


def _not_loaded(error: OperatorMistake, refused: Sequence[str]) -> str:
    """Why the scheduler's configuration cannot be used here, or what of the cluster cannot be read."""
    if not error.summary.startswith(SCHEDULERS_CONFIGURATION):
        problems = "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
        return f"{error.summary} {problems}".rstrip()
    if refused:
        return f"{'; '.join(refused)}."
    why = "; ".join(dict.fromkeys(problem.message for problem in error.problems)) or error.summary
    return f"{why.rstrip('.')}. Give --plugins and --feature-gates as the scheduler has them."


def _look(
    text: str, namespace: str | None, source: ExplainedSource, recorded: bool, recording: Recording | None, output: str
) -> tuple[dict[str, Any], str | None]:
    """What is known of the pod; and why a scheduler of this user could not add more."""
    from mooring.client import ApiClient
    from mooring.scheduler.introspection.explain_client import query
    from mooring.why.pod_document import is_decided_again, known
    from mooring.why.pod_document import recorded as schedulers_know

    connection = source.connection()
    namespace, name = pod_named(text, namespace)

    async def read() -> tuple[Pod, dict[str, Any]]:
        async with ApiClient(connection) as client:
            pod = await live_pod(client, connection, namespace or connection.namespace or "default", name)
            group = await _live_group(client, pod, with_members=not recorded)
            return pod, {} if group is None else {"podGroup": group}

    pod, group = asyncio.run(read())
    found = known(pod) | group
    queried = query(connection.server, {"explain": pod.key, "configuration": True})
    scheduler = schedulers_know(queried.responses, queried.problems, pod, is_unresponsive=queried.is_unresponsive)
    for sentence in scheduler.problems[1:] if scheduler.is_silent else scheduler.problems:
        print_line(f"Warning: {sentence}", err=True)
    found |= scheduler.document()
    source, configuration, refused = source.deciding_by(scheduler.decides_by, pod.spec.scheduler_name)
    if not recorded and is_decided_again(pod, found):
        try:
            cluster = source.read_live(connection, configuration)
            here = next((each for each in cluster.pods if each.uid == pod.uid), None)
            if here is None:
                raise Fault("the pod was deleted, or has ended, while the cluster was listed.")
            found |= _since(recording, here, cluster)
            found = _decided_again(found, cluster, source, here, output, configuration, connection)
        except OperatorMistake as error:
            if source.config_file is not None or configuration is None:
                raise
            found["notRecomputed"] = _not_loaded(error, refused)
        except MooringError as error:
            found["notRecomputed"] = str(error)
    return found, scheduler.problem
