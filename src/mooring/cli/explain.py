"""`mooring explain POD`: asks the scheduler that decided; without one, tells what the API server knows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import click

from mooring.base.errors import ApiError, Fault, OperatorMistake
from mooring.base.visible import visible_values
from mooring.cli.output import say, say_json, say_lines


@click.command()
@click.argument("pod")
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the pod.  [default: the kubeconfig's]")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print."
)
@click.option("--kubeconfig", metavar="FILE", help="The cluster.  [default: $KUBECONFIG, ./mooring.kubeconfig, …]")
def explain(pod: str, namespace: str | None, output: str, kubeconfig: str | None) -> None:
    """Say why POD runs where it does, or why it is still pending.

    \b
    Example:
      mooring explain web-0 --namespace shop
    """
    from mooring.explain import in_full

    found = asyncio.run(_look(pod, namespace, kubeconfig))
    if output == "json":
        say_json(found)
        return
    with _of_this_version():
        text = in_full(visible_values(found))
    say_lines(text, are_values_visible=True)


@contextlib.contextmanager
def _of_this_version() -> Iterator[None]:
    """A scheduler of another version may answer in another shape."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise Fault(f"the scheduler's answer cannot be read ({what}); is it of another version of Mooring?") from error


async def _look(name: str, namespace: str | None, kubeconfig: str | None) -> dict[str, Any]:
    from mooring.cli.kubeconfig_file import connection_here
    from mooring.client import ApiClient
    from mooring.objects import Pod
    from mooring.scheduler.control_client import ask

    connection = connection_here(kubeconfig)
    if "/" in name and namespace is None:
        namespace, _, name = name.partition("/")
    namespace = namespace or connection.namespace or "default"
    async with ApiClient(connection) as client:
        try:
            pod = await client.get_as(Pod, name, namespace)
        except ApiError as error:
            if error.code == 404:
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
    asked = ask(connection.server, {"explain": pod.key})
    for problem in asked.problems:
        say(f"Warning: {problem}", err=True)
    with _of_this_version():
        return found | _answered(asked.answers, pod.uid)


def _answered(answers: list[dict[str, Any]], uid: str) -> dict[str, Any]:
    """What the schedulers know of the pod with this uid."""
    known: dict[str, Any] = {}
    for answer in answers:
        if (gating := answer.get("gating")) and gating["uid"] == uid:
            known["gating"] = gating
        if answer.get("found") and answer["decision"]["uid"] == uid:
            return known | {"decision": answer["decision"], "queue": answer["queue"]}
        # Two replicas on one machine serve the same.
        known["asked"] = sorted({*known.get("asked", ()), *answer.get("profiles", ())})
    return known
