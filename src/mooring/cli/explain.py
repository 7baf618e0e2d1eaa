"""`mooring explain POD`: queries the scheduler that decided; without one, shows what the API server knows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import click

from mooring.base.errors import ApiError, Fault, OperatorMistake
from mooring.base.visible import visible_values
from mooring.cli.output import print_json, print_line, print_lines


@click.command()
@click.argument("pod")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the pod.  [default: the kubeconfig's]")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
)
@click.option("--kubeconfig", metavar="FILE", help="The cluster.  [default: $KUBECONFIG, ./mooring.kubeconfig, …]")
def explain(pod: str, namespace: str | None, output: str, kubeconfig: str | None) -> None:
    """Explain why POD runs where it does, or why it is still pending.

    \b
    Example:
      mooring explain web-0 --namespace shop
      mooring explain pod/web-0
    """
    from mooring.explain import in_full

    found, problem = asyncio.run(_look(pod, namespace, kubeconfig))
    if output == "json":
        print_json(found)
    else:
        with _of_this_version():
            text = in_full(visible_values(found))
        print_lines(text, are_values_visible=True)
    if problem is not None:
        raise Fault(problem)


@contextlib.contextmanager
def _of_this_version() -> Iterator[None]:
    """A scheduler of another version may respond in another shape."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise Fault(
            f"the scheduler's response cannot be decoded ({what}); is it of another version of Mooring?"
        ) from error


POD_KINDS = ("pod", "pods", "po")


WORKLOAD_KINDS = (
    *("deployment", "deployments", "deploy", "replicaset", "replicasets", "rs", "statefulset", "statefulsets", "sts"),
    *("daemonset", "daemonsets", "ds", "job", "jobs", "cronjob", "cronjobs", "cj"),
    *("replicationcontroller", "replicationcontrollers", "rc"),
)
"""As kubectl takes them; a group may follow: `deployment.apps`."""


def _is_workload(kind: str) -> bool:
    return kind.partition(".")[0].lower() in WORKLOAD_KINDS


def _no_workloads(text: str) -> OperatorMistake:
    return OperatorMistake(
        f'explain takes a pod, and "{text}" is a workload. List its pods with kubectl get pods -l SELECTOR (kubectl '
        f"describe {text} shows the selector), then explain one of them."
    )


def _named(text: str, namespace: str | None) -> tuple[str | None, str]:
    """Namespace and name of `web`, `shop/web` or `pod/web`, as kubectl prints it."""
    kind, is_prefixed, name = text.partition("/")
    if not is_prefixed:
        return namespace, text
    if kind in POD_KINDS:
        return namespace, name
    if "." in kind or namespace is not None:
        if _is_workload(kind):
            raise _no_workloads(text)
        raise OperatorMistake(f'"{text}" is no pod; name a pod as NAME, NAMESPACE/NAME or pod/NAME.')
    return kind, name


async def _look(text: str, namespace: str | None, kubeconfig: str | None) -> tuple[dict[str, Any], str | None]:
    """What is known of the pod; and why a scheduler of this user could not add more."""
    from mooring.cli.kubeconfig_file import connection_here
    from mooring.client import ApiClient
    from mooring.objects import Pod
    from mooring.scheduler.introspection.explain_client import query

    connection = connection_here(kubeconfig)
    namespace, name = _named(text, namespace)
    namespace = namespace or connection.namespace or "default"
    async with ApiClient(connection) as client:
        try:
            pod = await client.get_as(Pod, name, namespace)
        except ApiError as error:
            if error.code == 404:
                if "/" in text and _is_workload(text.partition("/")[0]):
                    raise _no_workloads(text) from error
                raise OperatorMistake(
                    f'there is no pod "{name}" in namespace "{namespace}" on {connection.address}; '
                    "give another namespace with -n."
                ) from error
            raise
    found: dict[str, Any] = {
        "pod": pod.key,
        "profile": pod.spec.scheduler_name,
        "node": pod.spec.node_name or None,
        "phase": pod.status.phase,
    }
    if (condition := pod.condition("PodScheduled")) is not None and condition.status == "False":
        found["condition"] = {"reason": condition.reason, "message": condition.message}
    queried = query(connection.server, {"explain": pod.key})
    with _of_this_version():
        known = _known_by(queried.responses, pod.uid)
        silence = [_silence(found) for found in queried.responses if "heldUp" in found or "error" in found]
    is_silent = "decision" not in known and "gating" not in known and (bool(silence) or queried.is_unresponsive)
    sentences = [*silence, *queried.problems]
    for sentence in sentences[1:] if is_silent else sentences:
        print_line(f"Warning: {sentence}", err=True)
    if not is_silent:
        return found | known, None
    return found | {"isUnresponsive": True, "problem": sentences[0]}, sentences[0]


def _silence(response: dict[str, Any]) -> str:
    """Why a scheduler that could be reached knows nothing about pods now."""
    if "error" in response:
        return f"the scheduler responded with an error: {response['error']}"
    held_up = response["heldUp"]
    if held_up is None:
        return "the scheduler is busy and has not responded in time; try again"
    by = f"plugin {held_up['plugin']} blocks it" if held_up["plugin"] else "it is blocked"
    since = f"for {held_up['seconds']:g} s"
    return f"the scheduler does not respond: {by} in {held_up['method']} at {held_up['at']}, {since} now."


def _known_by(responses: list[dict[str, Any]], uid: str) -> dict[str, Any]:
    """What the schedulers know of the pod with this uid."""
    known: dict[str, Any] = {}
    for response in responses:
        if (gating := response.get("gating")) and gating["uid"] == uid:
            known["gating"] = gating
        if response.get("found") and response["decision"]["uid"] == uid:
            return known | {"decision": response["decision"], "queue": response["queue"]}
        if "profiles" not in response:
            continue
        # Two replicas on one machine serve the same.
        known["servedProfiles"] = sorted({*known.get("servedProfiles", ()), *response.get("profiles", ())})
    return known
