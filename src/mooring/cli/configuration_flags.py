"""kube-scheduler's flags that stand for fields of the configuration, and where its completed form is written.

Most are older than the configuration file, and are ignored beside one, as kube-scheduler ignores them, with a warning.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.base.earlier_output import head_of
from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import write_private
from mooring.base.log import Log
from mooring.base.redaction import shown_url
from mooring.cli.gotypes import Flag, GoBool
from mooring.cli.output_files import REMOVE, OutputFile

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.config import Configuration

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "# The completed configuration, by mooring run --write-config-to.\n"
_log = Log("mooring")

_FLAGS: Mapping[str, tuple[click.ParamType[Any], str, str, str]] = {
    "--master": (click.STRING, "", "URL", "The API server's address, instead of the kubeconfig's."),
    "--kube-api-qps": (
        click.FLOAT,
        "50",
        "NUMBER",
        "Requests a second to the API server; unlimited by default. Only without --config.",
    ),
    "--kube-api-burst": (click.IntRange(min=0), "100", "NUMBER", "Requests at once, likewise."),
    "--kube-api-content-type": (
        click.STRING,
        "application/vnd.kubernetes.protobuf",
        "TYPE",
        "No effect: Mooring uses JSON.",
    ),
    "--profiling": (GoBool(), "true", "BOOL", "No effect: there are no Go profiles to fetch."),
    "--contention-profiling": (GoBool(), "true", "BOOL", "Of no effect."),
    "--write-config-to": (
        OutputFile("completed configuration", f"{__name__}:is_written_configuration", advice=REMOVE),
        "",
        "FILE",
        "Write the completed configuration to FILE and end.",
    ),
}


@dataclass(frozen=True)
class ConfigurationFlags:
    """As given; None where not."""

    master: str | None = None
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    kube_api_content_type: str | None = None
    profiling: bool | None = None
    contention_profiling: bool | None = None
    write_config_to: str | None = None

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> ConfigurationFlags:
        """Those of a command's parameters that are ours; they are taken out of `given`."""
        return cls(**{each.name: given.pop(each.name) for each in dataclasses.fields(cls)})

    def applied_to(self, configuration: Configuration, config_file: str | None) -> Configuration:
        """What holds with these flags."""
        if config_file:
            return configuration
        connection = configuration.client_connection
        return dataclasses.replace(
            configuration,
            client_connection=dataclasses.replace(
                connection,
                qps=connection.qps if self.kube_api_qps is None else self.kube_api_qps or None,
                burst=connection.burst if self.kube_api_burst is None else self.kube_api_burst or None,
                content_type=self.kube_api_content_type or connection.content_type,
            ),
            enable_profiling=configuration.enable_profiling if self.profiling is None else self.profiling,
            enable_contention_profiling=configuration.enable_contention_profiling
            if self.contention_profiling is None
            else self.contention_profiling,
        )

    def warn(self, config_file: str | None) -> None:
        """Warn about flags without effect."""
        if self.profiling:
            _log.warning("has no meaning here: there is no /debug/pprof, which is Go's", flag="--profiling")
        if self.contention_profiling:
            _log.warning("has no meaning here: there is no /debug/pprof, which is Go's", flag="--contention-profiling")
        if self.kube_api_content_type not in (None, "", "application/json"):
            _log.warning("has no meaning here: Mooring uses JSON", flag="--kube-api-content-type")
        deprecated = {
            "--kube-api-qps": self.kube_api_qps,
            "--kube-api-burst": self.kube_api_burst,
            "--profiling": self.profiling,
            "--contention-profiling": self.contention_profiling,
        }
        for flag, value in deprecated.items():
            if config_file and value is not None:
                _log.warning("is ignored beside --config, as kube-scheduler ignores it: set it there", flag=flag)

    def connected(self, found: Connection) -> Connection:
        """The connection, to the address that `--master` names."""
        if not self.master:
            return found
        return dataclasses.replace(found, server=_url(self.master), source="--master")

    def connection_without_kubeconfig(self) -> Connection | None:
        """What `--master` alone is good for: a server that requires no credentials."""
        from mooring.client import Connection

        return Connection(server=_url(self.master), source="--master") if self.master else None


def _url(master: str) -> str:
    """As client-go reads an address: with a scheme or, without one, over plain HTTP."""
    url = master if "://" in master else f"http://{master}"
    if not url.startswith(("http://", "https://")):
        raise OperatorMistake.found_in(
            "the command line", [Problem("--master", f'must be an http or https address, got "{shown_url(master)}"')]
        )
    return url.rstrip("/")


def configuration_options(command: F) -> F:
    """The flags; the command gets them among its parameters."""
    for flag, (kind, unset, metavar, help_text) in reversed(list(_FLAGS.items())):
        command = click.option(flag, cls=Flag, type=kind, default=None, unset=unset, metavar=metavar, help=help_text)(
            command
        )
    return command


def is_written_configuration(path: str) -> bool:
    """Whether `write_configuration` wrote it."""
    return head_of(path).startswith(_MARK.encode())


def write_configuration(configuration: Configuration, file: str) -> None:
    """The completed configuration, as YAML. It may hold an extender's key or password, so the file is private."""
    from mooring.base.documents import written
    from mooring.config.as_v1 import as_v1

    try:
        write_private(file, _MARK + written(as_v1(configuration, with_credentials=True)))
    except OSError as error:
        problem = Problem("--write-config-to", f"{file} cannot be written: {error.strerror}")
        raise OperatorMistake.found_in("the command line", [problem]) from error
    _log.info("Wrote configuration", file=file)
