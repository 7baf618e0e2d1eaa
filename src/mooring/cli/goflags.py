"""kube-scheduler's command line, as its own flag library reads it: `-v=6`, `--v 6`, `--leader-elect`.

Every flag of kube-scheduler v1.36 is known here. Those whose feature Mooring does not have yet are refused when they
are given, with a sentence; none is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from mooring.base.durations import duration_seconds
from mooring.base.errors import OperatorMistake, Problem, did_you_mean

NOT_YET = {
    "leader election": (
        "leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period leader-elect-resource-lock "
        "leader-elect-resource-name leader-elect-resource-namespace"
    ),
    "serving health, metrics and configuration over HTTPS": (
        "bind-address secure-port cert-dir tls-cert-file tls-private-key-file tls-cipher-suites tls-curve-preferences "
        "tls-min-version tls-sni-cert-key disable-http2-serving http2-max-streams-per-connection "
        "permit-address-sharing permit-port-sharing authentication-kubeconfig authentication-skip-lookup "
        "authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure client-ca-file "
        "requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix "
        "requestheader-group-headers requestheader-uid-headers requestheader-username-headers "
        "authorization-kubeconfig authorization-always-allow-paths authorization-webhook-cache-authorized-ttl "
        "authorization-webhook-cache-unauthorized-ttl show-hidden-metrics-for-version disabled-metrics "
        "allow-metric-labels allow-metric-labels-manifest profiling contention-profiling"
    ),
    "feature gates": "feature-gates emulated-version min-compatibility-version",
    "writing the completed configuration": "write-config-to",
    "client settings by flag (use clientConnection in the configuration file)": (
        "master kube-api-content-type kube-api-qps kube-api-burst"
    ),
    "this way to steer the log": (
        "vmodule log-flush-frequency log-text-split-stream log-text-info-buffer-size log-json-split-stream "
        "log-json-info-buffer-size"
    ),
}
REMOVED = {
    *("port", "address", "algorithm-provider", "scheduler-name", "lock-object-name", "lock-object-namespace"),
    *("policy-config-file", "policy-configmap", "policy-configmap-namespace", "use-legacy-policy-config"),
    "hard-pod-affinity-symmetric-weight",
}
SWITCHES = {
    *("leader-elect", "disable-http2-serving", "permit-address-sharing", "permit-port-sharing", "profiling"),
    *("authentication-skip-lookup", "authentication-tolerate-lookup-failure", "contention-profiling"),
    *("log-text-split-stream", "log-json-split-stream", "version", "help"),
}
OURS = [
    "config",
    "kubeconfig",
    "plugins",
    "v",
    "leader-elect",
    "logging-format",
    "pod-max-in-unschedulable-pods-duration",
]

_FEATURE_OF = {flag: feature for feature, flags in NOT_YET.items() for flag in flags.split()}


def normalised(arguments: Sequence[str]) -> list[str]:
    """The same command line in the form that click reads; what cannot be honoured is refused, all at once."""
    problems: list[Problem] = []
    result: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*result, *rest]
        if not argument.startswith("-") or argument == "-":
            result.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if argument.startswith("-v") and not argument.startswith("--") and argument[2:].isdigit():
            name, equals, value = "v", "=", argument[2:]
        if name == "h" and not equals:
            name = "help"
        if problem := refusal(name):
            problems.append(Problem(f"--{name}", problem))
            if not equals and name not in SWITCHES:
                next(rest, None)
            continue
        if not equals and name not in SWITCHES:
            value = next(rest, "")
            if not value:
                problems.append(Problem(f"--{name}", "needs a value"))
                continue
        elif not equals:
            value = "true"
        if name in ("help", "version"):
            result.append(f"--{name}")
        else:
            result.append(f"--{name}={value}")
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    return result


def refusal(name: str) -> str | None:
    """Why a flag cannot be given; None if it can."""
    if name in OURS or name in ("help", "version"):
        return None
    if name in _FEATURE_OF:
        return f"is kube-scheduler's flag for {_FEATURE_OF[name]}, which Mooring does not have yet; leave it out"
    if name in REMOVED:
        return "was removed from kube-scheduler long ago; write a configuration file and give it with --config"
    hint = did_you_mean(f"--{name}", [f"--{flag}" for flag in (*OURS, *_FEATURE_OF)])
    return f"is not a flag of kube-scheduler or Mooring.{hint}"


class GoBool(click.ParamType[bool]):
    """true or false, as Go's strconv.ParseBool reads it."""

    name = "bool"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if value in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        return self.fail(f'must be true or false, got "{value}"', param, ctx)


class GoDuration(click.ParamType[float]):
    """A duration as Go writes it: `5m0s`, `90s`, `1h30m`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        seconds = duration_seconds(str(value))
        if seconds is None:
            self.fail(f'must be a duration such as "5m" or "90s", got "{value}"', param, ctx)
        return seconds


class VerbosityCommand(click.Command):
    """A command of ours that takes kube-scheduler's `-v=6` beside `-v 6`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"--v={arg[3:]}" if arg.startswith("-v=") else arg for arg in args])


class KubeSchedulerCommand(click.Command):
    """A command that reads its arguments as kube-scheduler does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, normalised(args))
