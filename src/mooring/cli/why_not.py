"""`mooring why-not POD NODE`: every filter and every score of one node, and what would bring the pod there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from mooring.base.errors import Fault
from mooring.base.visible import visible_values
from mooring.cli.explained_cluster import ExplainedSource, live_pod, pod_in, pod_named, print_document, source_options
from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.objects import Pod


@click.command(name="why-not")
@click.argument("pod")
@click.argument("node")
@source_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How to print.",
)
def why_not(pod: str, node: str, source: ExplainedSource, namespace: str | None, output: str) -> None:
    """Explain why POD is not on NODE: every filter's verdict, its scores, and the smallest change.

    The pod is decided again on the cluster as it is now, as if it were not bound. Nothing is written; each change was
    verified by deciding once more with it made.

    \b
    Example:
      mooring why-not web-0 node-7 --namespace shop
      mooring why-not web-0 node-7 --cluster prod.snapshot -o json
    """
    from mooring.client import ApiClient
    from mooring.explain import why_not_in_full
    from mooring.scheduler.introspection.explain_client import query
    from mooring.why import why_not as explain_why_not

    namespace, name = pod_named(pod, namespace)
    configuration, connection = None, None
    if source.file is not None:
        cluster = source.read_file()
        chosen = pod_in(cluster, source, namespace or "default", name)
    else:
        from mooring.why.pod_document import decides_by_of

        connection = live = source.connection()

        async def read() -> Pod:
            async with ApiClient(live) as client:
                return await live_pod(client, live, namespace or live.namespace or "default", name)

        waiting = asyncio.run(read())
        request = {"explain": waiting.key, "configuration": True}
        scheduler = decides_by_of(query(connection.server, request).responses, waiting)
        source, configuration, refused = source.deciding_by(scheduler, waiting.spec.scheduler_name)
        for sentence in refused:
            print_line(f"Warning: {sentence}.", err=True)
        cluster = source.read_live(connection, configuration)
        here = [each for each in cluster.pods if each.uid == waiting.uid]
        if not here:
            raise Fault(f"pod {waiting.key} was deleted, or has ended.")
        chosen = here[0]
    for note in cluster.notes:
        print_line(f"Warning: {note}", err=True)
    with source.recomputation(cluster, configuration, connection) as recomputation:
        found = explain_why_not(recomputation, chosen, node.rpartition("/")[2])
        if recomputation.notes:
            found["notes"] = recomputation.notes
    print_document(found, output, lambda: why_not_in_full(visible_values(found)))
