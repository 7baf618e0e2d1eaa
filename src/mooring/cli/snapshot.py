"""`mooring snapshot`: what scheduling reads of a cluster, in a file that `--cluster` restores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.base.clock import SystemClock
from mooring.base.errors import OperatorMistake
from mooring.cli.common import gates_option, load, plugins_option, registry_with, verbosity_option
from mooring.cli.output import print_line
from mooring.cli.output_files import OutputFile, replaces_files

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.framework.gates import FeatureGates
    from mooring.objects.meta import Kind
    from mooring.snapshots import Header, Spool

STDOUT = "/dev/stdout"
SHOWN_EVERY = 10_000
"""Objects of one kind, between two lines of progress."""
REQUESTS_IN_FLIGHT = 2
"""Pages are listed one after the other."""


@click.command()
@click.argument("file", required=False, type=OutputFile("snapshot"))
@click.option("--anonymize", is_flag=True, help="Replace names, labels, images and the like; decisions stay.")
@click.option(
    "--keep-label",
    "labels",
    multiple=True,
    metavar="KEY",
    help="With --anonymize: leave this label and its values, because a configuration or a plugin names it. Repeatable.",
)
@click.option("--from", "source", metavar="FILE", help="With --anonymize: a snapshot to read instead of a cluster.")
@click.option(
    "--keep-annotation",
    "annotations",
    multiple=True,
    metavar="KEY",
    help="Save this annotation, too, or with `example.com/*` several: for plugins that read it. Repeatable.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    help="Save also the custom kinds that its plugins, or those of --plugins, read.",
)
@plugins_option
@gates_option
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster; found as `mooring run` finds it.")
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
@replaces_files
@verbosity_option
def snapshot(
    file: str | None,
    anonymize: bool,
    labels: tuple[str, ...],
    source: str | None,
    annotations: tuple[str, ...],
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Save what scheduling reads of a cluster in FILE, for `mooring up --cluster FILE`.

    Rights to list are enough. Secrets and ConfigMaps are not requested; environment variables, commands and other
    fields that scheduling does not read are left out. Without FILE it is mooring-TIME.snapshot; `-` is the standard
    output.

    \b
    Example:
      mooring snapshot cluster.snapshot --context production
      mooring snapshot to-share.snapshot --from cluster.snapshot --anonymize
      mooring up --cluster cluster.snapshot
    """
    from mooring.snapshots import Spool, read_snapshot

    if not anonymize and (source is not None or labels):
        raise click.UsageError("--from and --keep-label are for --anonymize.")
    if source is not None and (kubeconfig or context or config_file or plugins or annotations):
        raise click.UsageError("--from reads a file: leave out what chooses a cluster or what is read of it.")
    path = _target(file)
    folder = None if path == STDOUT else Path(path).parent
    try:
        if source is not None:
            found = read_snapshot(source)
            _write_anonymized(path, found.header, found.documents, folder, labels)
            return
        connection, kinds = _cluster(config_file, plugins, gates, kubeconfig, context)
        with Spool(folder) as spool:
            header = asyncio.run(_taken(connection, kinds, spool, annotations))
            if anonymize:
                _write_anonymized(path, header, spool.documents, folder, labels)
            else:
                _write(path, header, spool)
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be written: {error.strerror or error}.") from error


def _target(file: str | None) -> str:
    if file is None:
        from datetime import UTC, datetime

        file = datetime.fromtimestamp(SystemClock().now(), UTC).strftime("mooring-%Y%m%d-%H%M%S.snapshot")
        if os.path.lexists(file):
            raise OperatorMistake(f"{file} exists already; choose another name.")
    if file in ("-", STDOUT):
        if os.isatty(1):
            raise OperatorMistake("a snapshot is compressed, and no text for a terminal; name a file.")
        return STDOUT
    return file


def _cluster(
    config_file: str | None,
    plugins: tuple[str, ...],
    gates: FeatureGates,
    kubeconfig: str | None,
    context: str | None,
) -> tuple[Connection, dict[Kind, dict[str, Any]]]:
    """The cluster, and the custom kinds that plugins of the configuration or of `--plugins` read, with the definitions
    of their classes."""
    from mooring.cli.plugin_definitions import saved_kinds
    from mooring.client import find_connection

    registry = registry_with(plugins)
    configuration = load(config_file, registry, gates)
    kinds = saved_kinds(configuration, registry)
    own = configuration.client_connection.kubeconfig or None
    return find_connection(kubeconfig=kubeconfig, config_kubeconfig=own, context=context), kinds


async def _taken(
    connection: Connection, kinds: dict[Kind, dict[str, Any]], spool: Spool, annotations: tuple[str, ...]
) -> Header:
    from mooring.client import ApiClient
    from mooring.snapshots import take_snapshot

    print_line(f"Listing {connection.address} …", err=True)
    async with ApiClient(connection, user_agent="mooring snapshot", in_flight=REQUESTS_IN_FLIGHT) as client:
        return await take_snapshot(
            client, spool, custom_kinds=kinds, keep_annotations=annotations, on_page=pages_shown()
        )


def pages_shown() -> Callable[[str, int], None]:
    """Prints a line of progress now and then, on standard error."""
    shown: dict[str, int] = {}

    def on_page(kind: str, count: int) -> None:
        if count // SHOWN_EVERY > shown.get(kind, 0):
            shown[kind] = count // SHOWN_EVERY
            print_line(f"{kind}: {count:,} …", err=True)

    return on_page


def _write_anonymized(
    path: str,
    header: Header,
    documents: Callable[[], Iterator[dict[str, Any]]],
    folder: Path | None,
    keep_labels: tuple[str, ...],
) -> None:
    from mooring.snapshots import Spool, anonymize

    print_line("Replacing names …", err=True)
    with Spool(folder) as anonymized:
        _write(path, anonymize(header, documents, anonymized, keep_labels=keep_labels), anonymized)


def _write(path: str, header: Header, spool: Spool) -> None:
    from mooring.snapshots import write_snapshot

    size = write_snapshot(path, header, spool)
    is_output = path == STDOUT
    for kind, count in sorted(header.counts.items(), key=lambda each: -each[1]):
        print_line(f"{count:>9,}  {kind}", err=is_output)
    for each in header.left_out:
        print_line(f"{'-':>9}  {each.kind}: {each.reason}, left out", err=is_output)
    what = "anonymized, " if header.anonymized else ""
    print_line(
        f"Saved {header.objects:,} objects of Kubernetes {header.server_version} in "
        f"{'the standard output' if is_output else path} ({what}{_shown_size(size)}).",
        err=is_output,
    )


def _shown_size(size: int) -> str:
    for unit, least in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= least:
            return f"{size / least:.1f} {unit}"
    return f"{size} bytes"
