"""All flags of kube-scheduler's that are not about one subject of `mooring run`'s own, gathered for that command."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from mooring.base import log
from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.configuration_flags import ConfigurationFlags, configuration_options
from mooring.cli.election import election_of, election_options
from mooring.cli.goflags import flags_of
from mooring.cli.gotypes import GoBool, Row, flags
from mooring.cli.idle_flags import idle_options
from mooring.cli.metric_flags import metric_filter, metric_options
from mooring.cli.serving import ServingFlags, serving_options
from mooring.cli.version import version_option

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.config import Configuration
    from mooring.framework.gates import FeatureGates

F = TypeVar("F", bound=Callable[..., Any])

LOGGING_GATE = "LoggingAlphaOptions"
LOG_FORMATS = ("text", "json")


def kube_scheduler_options(command: F) -> F:
    """The flags; the command gets them as its parameters `**flags`."""
    for options in (
        version_option,
        idle_options,
        split_stream_options,
        metric_options,
        serving_options,
        configuration_options,
        election_options,
    ):
        command = options(command)
    return command


class KubeFlags(msgspec.Struct, frozen=True):
    """What the command line requests."""

    serving: ServingFlags
    configuration: ConfigurationFlags
    election: dict[str, Any]

    @classmethod
    def taken_from(cls, given: dict[str, Any], gates: FeatureGates) -> KubeFlags:
        """From a command's parameters; they are taken out of `given`. To be called while the command runs."""
        split_streams(given, gates)
        context = click.get_current_context()
        configuration = ConfigurationFlags.taken_from(given)
        configuration.warn(context.params.get("config_file"))
        return cls(
            ServingFlags.taken_from(given, metric_filter(given), flags_of(context)),
            configuration,
            {name: given.pop(name) for name in list(given) if name.startswith("leader_elect")},
        )

    def applied_to(
        self, configuration: Configuration, config_file: str | None, kubeconfig: str | None
    ) -> Configuration:
        """The effective configuration: the file, and the flags that count beside it."""
        changed = self.configuration.applied_to(configuration, config_file)
        if kubeconfig:
            connection = dataclasses.replace(changed.client_connection, kubeconfig=kubeconfig)
            changed = dataclasses.replace(changed, client_connection=connection)
        return dataclasses.replace(changed, leader_election=election_of(changed.leader_election, self.election))

    def connection(self, configuration: Configuration) -> Connection:
        """The API server to use."""
        from mooring.client import find_connection

        named = configuration.client_connection.kubeconfig
        if not named and (bare := self.configuration.connection_without_kubeconfig()) is not None:
            return bare
        return self.configuration.connected(find_connection(kubeconfig=named or None))


def split_stream_options(command: F) -> F:
    """`--log-text-split-stream` and `--log-json-split-stream`."""
    rows: dict[str, Row] = {
        f"--log-{form}-split-stream": (GoBool(), False, "BOOL", f"In {form} format, write what is no error to stdout.")
        for form in LOG_FORMATS
    }
    return flags(rows)(command)


def split_streams(given: dict[str, Any], gates: FeatureGates) -> None:
    """Apply these parameters of a command; they are taken out of `given`."""
    requested = {form: given.pop(f"log_{form}_split_stream") for form in LOG_FORMATS}
    problems = [
        Problem(
            f"--log-{form}-split-stream", f"needs --feature-gates={LOGGING_GATE}=true, as it does in kube-scheduler"
        )
        for form, is_requested in requested.items()
        if is_requested and not gates.on(LOGGING_GATE)
    ]
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    if requested[log.settings().format]:
        log.configure(info_stream=sys.stdout)
