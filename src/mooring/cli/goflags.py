"""kube-scheduler's command line, as its own flag library reads it: `-v=6`, `--v 6`, `--leader-elect`.

Which flags there are follows from the command's options. A flag that kube-scheduler has removed is refused with what
to do instead; an unknown one with a suggestion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click
import msgspec

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.base.redaction import scrubbed
from mooring.cli.gotypes import Flag, GoBool, GoDuration

__all__ = ["GoBool", "GoDuration", "KubeSchedulerCommand", "VerbosityCommand", "flags_of", "normalised"]

_FILE = "write a configuration file and give it with --config"
REMOVED = {
    "port": "plain HTTP is no longer served; use --secure-port",
    "address": "plain HTTP is no longer served; use --bind-address",
    "algorithm-provider": f"providers are gone; {_FILE}, with profiles",
    "scheduler-name": f"{_FILE}; its profiles have a schedulerName",
    "lock-object-name": "use --leader-elect-resource-name",
    "lock-object-namespace": "use --leader-elect-resource-namespace",
    "policy-config-file": f"policies are gone; {_FILE}",
    "policy-configmap": f"policies are gone; {_FILE}",
    "policy-configmap-namespace": f"policies are gone; {_FILE}",
    "use-legacy-policy-config": f"policies are gone; {_FILE}",
    "hard-pod-affinity-symmetric-weight": f"{_FILE}; the argument of InterPodAffinity is hardPodAffinityWeight",
    "failure-domains": f"{_FILE}",
    "experimental-logging-sanitization": "it has no successor; leave it out",
    "log-dir": "logs go to stderr; redirect it",
    "log-file": "logs go to stderr; redirect it",
    "log-file-max-size": "logs go to stderr; redirect it",
    "logtostderr": "logs go to stderr; leave it out",
    "alsologtostderr": "logs go to stderr; leave it out",
    "stderrthreshold": "all logs go to stderr; leave it out",
    "add-dir-header": "it has no successor; leave it out",
    "skip-headers": "use --logging-format",
    "skip-log-headers": "it has no successor; leave it out",
    "one-output": "it has no successor; leave it out",
    "log-backtrace-at": "it has no successor; leave it out",
}
"""What kube-scheduler had once, and what to do now."""

_HELP = "help"
_FLAGS = "mooring.flags"


class KnownFlags(msgspec.Struct, frozen=True):
    """The flags of a command: all, and those that stand for `true` without a value."""

    names: frozenset[str]
    switches: frozenset[str]


def known(parameters: Iterable[click.Parameter]) -> KnownFlags:
    names, switches = {_HELP}, {_HELP}
    for parameter in parameters:
        if isinstance(parameter, click.Option):
            own = {each.lstrip("-") for each in (*parameter.opts, *parameter.secondary_opts)}
            names |= own
            if isinstance(parameter.type, GoBool) or parameter.is_flag or "version" in own:
                switches |= own
    return KnownFlags(frozenset(names), frozenset(switches))


def normalised(arguments: Sequence[str], flags: KnownFlags) -> list[str]:
    """The same command line in the form that click reads; what cannot be honoured is refused, all at once."""
    problems: list[Problem] = []
    result: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*result, argument, *rest]
        if not argument.startswith("-") or argument == "-":
            result.append(argument)
            continue
        name, value = _split(argument)
        if value is None and name not in flags.switches:
            value = next(rest, None)
        if problem := refusal(name, flags):
            problems.append(Problem(f"--{name}", problem))
        elif name == _HELP:
            result.append("--help")
        elif value is None and name not in flags.switches:
            problems.append(Problem(f"--{name}", "needs a value"))
        else:
            result.append(f"--{name}={'true' if value is None else value}")
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    return result


def _split(argument: str) -> tuple[str, str | None]:
    if argument.startswith("-v") and not argument.startswith("--") and argument[2:].isdigit():
        return "v", argument[2:]
    name, equals, value = argument.lstrip("-").partition("=")
    name = _HELP if name == "h" else name.replace("_", "-")
    return name, value if equals else None


def refusal(name: str, flags: KnownFlags) -> str | None:
    """Why a flag cannot be given; None if it can."""
    if name in flags.names:
        return None
    if name in REMOVED:
        return f"was removed from kube-scheduler: {REMOVED[name]}"
    hint = did_you_mean(f"--{name}", [f"--{flag}" for flag in sorted(flags.names)])
    return f"is not a flag of kube-scheduler or Mooring.{hint}"


class VerbosityCommand(click.Command):
    """A command that accepts kube-scheduler's `-v=6` as well as `-v 6`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"--v={arg[3:]}" if arg.startswith("-v=") else arg for arg in args])


class KubeSchedulerCommand(click.Command):
    """A command that reads its arguments as kube-scheduler does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        read = normalised(args, known(self.params))
        # A copy: click empties the list that it parses.
        ctx.meta[_FLAGS] = list(read)
        return super().parse_args(ctx, read)


def flags_of(ctx: click.Context) -> dict[str, str]:
    """Every flag of the running command with its value as /flagz shows it."""
    given: dict[str, list[str]] = {}
    for argument in ctx.meta.get(_FLAGS, ()):
        name, equals, value = argument.removeprefix("--").partition("=")
        if equals and argument.startswith("--"):
            given.setdefault(name, []).append(value)
    found = {_HELP: "false"}
    for parameter in ctx.command.params:
        if isinstance(parameter, click.Option):
            name = max((each.lstrip("-") for each in parameter.opts), key=len)
            values = given.get(name, [])
            text = parameter.text(values) if isinstance(parameter, Flag) else ",".join(values)
            found[name] = scrubbed(text)
    return found
