"""`mooring trace …`: workloads of simulations from published traces, and from a seed."""

from __future__ import annotations

import click

from mooring.base.errors import OperatorMistake
from mooring.cli.command_group import CommandGroup
from mooring.cli.output import print_line
from mooring.cli.output_files import OutputFile, replaces_files

output_option = click.option(
    "-o",
    "--output",
    type=OutputFile("trace", "mooring.simulator.trace_writer:is_trace"),
    required=True,
    metavar="FILE",
    help="The workload: .csv, .json, .jsonl (also .gz, .xz), .parquet.",
)


@click.group(cls=CommandGroup)
def trace() -> None:
    """Import published traces as workloads of `mooring simulate`, or generate some.

    \b
    Example:
      mooring trace import openb openb_pod_list_default.csv openb_node_list_gpu_node.csv -o workload.csv
    """


@trace.command("import", short_help="Convert a published trace.")
@click.argument("format")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@output_option
@click.option(
    "--cluster-out",
    type=OutputFile("cluster file", "mooring.simulator.importers.imported_trace:is_cluster_file"),
    metavar="FILE",
    help="Also write the nodes of the trace, as a cluster file.",
)
@replaces_files
def import_(format: str, paths: tuple[str, ...], output: str, cluster_out: str | None) -> None:
    """Convert a published trace: openb, pai2020, philly, helios or azure-packing.

    PATH is a file of the trace, or a folder that has its files. What a format lacks, and what was left out, is listed
    at the end; bad rows are reported with file, line and column, and then nothing is written.

    \b
    Example:
      mooring trace import helios data/Venus -o venus.parquet --cluster-out venus.yaml
      mooring simulate --cluster venus.yaml --workload venus.parquet
    """
    from mooring.base.files import write_whole
    from mooring.simulator.importers import read
    from mooring.simulator.trace_writer import write_trace

    imported = read(format, paths)
    if cluster_out is not None and not imported.nodes:
        raise OperatorMistake("--cluster-out needs the file that lists the nodes of the trace; name it as well.")
    pods = write_trace(output, imported.rows, imported.resources)
    print_line(f"{output} has {pods:,} pods.")
    if cluster_out is not None:
        try:
            write_whole(cluster_out, imported.cluster_file())
        except OSError as error:
            raise OperatorMistake(f"{cluster_out} cannot be written: {error.strerror or error}.") from error
        print_line(f"{cluster_out} has {len(imported.nodes):,} nodes.")
    for note in imported.notes:
        print_line(note)


@trace.command(short_help="Write the pods of a GeneratedWorkload.")
@click.argument("document")
@output_option
@replaces_files
def generate(document: str, output: str) -> None:
    """Write the pods that the GeneratedWorkloads of a YAML file make, as a trace. The same seed makes the same bytes.

    \b
    Example:
      mooring trace generate workload.yaml -o workload.csv
    """
    from mooring.cli.common import read_text
    from mooring.simulated.cluster_file import ClusterFile
    from mooring.simulator.generated_workload import rows_in
    from mooring.simulator.trace_writer import write_trace

    file = ClusterFile(read_text(document), document, now=0.0)
    file.refuse(file.problems)
    if not file.initial.workloads:
        raise OperatorMistake(f"{document} has no GeneratedWorkload.")
    pods = write_trace(output, rows_in(file))
    print_line(f"{output} has {pods:,} pods.")
