"""The entry point: finds the subcommand, and turns failures into messages and exit codes.

Exit codes: 0 done, 1 fault, 2 operator's mistake. Nothing heavy is imported here: `mooring --help` must be instant.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from pathlib import PurePath

import click

from mooring import __version__
from mooring.base.errors import Fault, MooringError, OperatorMistake
from mooring.cli.command_group import CommandGroup
from mooring.cli.ending import leave
from mooring.cli.hangup import KUBE_SCHEDULER
from mooring.cli.output import prepare, print_error, show_usage_error

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
KUBECTL_PLUGIN = "kubectl-mooring"

COMMANDS = {
    "up": ("mooring.cli.up:up", "Start an embedded cluster and a scheduler, here and now."),
    "demo": ("mooring.cli.demo:demo", "Watch Mooring schedule a few pods, without a cluster."),
    "run": ("mooring.cli.run:run", "Run the scheduler against an API server."),
    "cluster": ("mooring.cli.cluster:cluster", "Start the embedded API server and simulated nodes alone."),
    "controllers": (
        "mooring.cli.controllers:controllers",
        "Keep the status of PodGroups and ElasticQuotas.",
    ),
    "nodes": ("mooring.cli.nodes:nodes", "Simulate nodes and their kubelets on any API server."),
    "snapshot": ("mooring.cli.snapshot:snapshot", "Save what scheduling reads of a cluster in a file."),
    "simulate": ("mooring.cli.simulate:simulate", "Simulate a workload on a cluster, on virtual time."),
    "compare": ("mooring.cli.compare:compare", "Show which pods another configuration would move, and why."),
    "trace": ("mooring.cli.trace:trace", "Import or generate traces, workloads of simulations."),
    "fit": ("mooring.cli.fit:fit", "Find how many more pods of a manifest fit into a cluster."),
    "capacity": ("mooring.cli.capacity:capacity", "Find the fewest nodes to add so that a workload is placed."),
    "drain-check": ("mooring.cli.drain_check:drain_check", "Check whether nodes can be drained, and what objects."),
    "replay": (
        "mooring.cli.replay:replay",
        "Show recorded decisions, or decide them again with another configuration.",
    ),
    "explain": ("mooring.cli.explain:explain", "Explain why a pod runs where it does, or why it is pending."),
    "why-not": ("mooring.cli.why_not:why_not", "Explain why a pod is not on a certain node."),
    "web": ("mooring.cli.web:web", "Serve a page that shows a cluster and explains its pods."),
    "manifests": ("mooring.cli.manifests:manifests", "Print what runs a configuration in a cluster."),
    "config": ("mooring.cli.config:config", "Check, convert or show a KubeSchedulerConfiguration."),
    "conformance": ("mooring.cli.conformance:conformance", "Compare decisions with the real kube-scheduler's."),
    "bench": ("mooring.cli.bench:bench", "Measure what a decision costs."),
    "plugin": ("mooring.cli.plugin:plugin", "List, show, create or test plugins."),
    "doctor": ("mooring.cli.doctor:doctor", "Check a configuration against a cluster: rights, kinds, lease, clock."),
    "crd": ("mooring.cli.crd:crd", "Print the CustomResourceDefinitions that a plugin needs."),
    "health": ("mooring.cli.health:health", "Probe the health of a running scheduler."),
    "completion": ("mooring.cli.completion:completion", "Print what lets a shell complete commands and options."),
    "version": ("mooring.cli.version:version", "Print Mooring's version."),
}


class LazyGroup(CommandGroup):
    """Knows every command's one-line help, and imports a command only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mooring", message="%(prog)s %(version)s")
def cli() -> None:
    """The Kubernetes scheduler that you extend in Python.

    \b
    Example:
      mooring up --nodes 3                     # no cluster needed
      export KUBECONFIG=$PWD/mooring.kubeconfig
      kubectl run web --image=nginx && kubectl get pods -o wide
    """


def main() -> None:
    """Run the command; the only place where a failure becomes an exit code."""
    prepare()
    program = PurePath(sys.argv[0]).name
    leave(
        exit_code(
            sys.argv[1:], {KUBE_SCHEDULER: KUBE_SCHEDULER, KUBECTL_PLUGIN: "kubectl mooring"}.get(program, "mooring")
        )
    )


def exit_code(arguments: list[str], program: str = "mooring") -> int:
    """Under kube-scheduler's name it is `mooring run`, so that a manifest needs no other command."""
    try:
        if program == KUBE_SCHEDULER:
            command = LazyGroup().get_command(click.Context(cli), "run")
            assert command is not None
        else:
            command = cli
        result = command.main(args=arguments, prog_name=program, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        show_usage_error(error)
        return error.exit_code
    except click.Abort:
        return 130
    except OperatorMistake as mistake:
        return _report(mistake, 2)
    except MooringError as fault:
        return _report(fault, 1)
    except ExceptionGroup as group:
        # Tasks that ran together: the first Fault explains the others.
        faults, others = group.split(MooringError)
        if faults is None or others is not None:
            raise
        first = _leaf(faults)
        return _report(first, 1 if isinstance(first, Fault) else 2)
    except BrokenPipeError:
        # The reader of our output has closed the pipe (`mooring … | head`), which is no error.
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in FULL:
            raise
        # Files of ours are named where they are written; what is left is a standard output that is a file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _report(OperatorMistake(f"the standard output cannot be written: {error.strerror}."), 2)


def _leaf(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _report(error: BaseException, code: int) -> int:
    print_error(error)
    return code
