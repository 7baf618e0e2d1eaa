"""`mooring web`: the cluster as a page in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.base import log
from mooring.base.errors import OperatorMistake
from mooring.base.memory import limit_own_memory
from mooring.cli.cluster import end_with_stdin
from mooring.cli.common import verbosity_option
from mooring.cli.explained_cluster import ExplainedSource, cluster_and_configuration_options
from mooring.cli.goflags import VerbosityCommand
from mooring.cli.output import print_line
from mooring.cli.stopping import Stop, run_until_signalled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mooring.config import Configuration
    from mooring.framework.registry import Registry
    from mooring.simulator import Cluster
    from mooring.web.mirror import Mirror
    from mooring.web.used_configuration import ReadConfiguration

SHUTDOWN_SECONDS = 5.0
REFRESH_SECONDS = 60.0
"""How often certificates are read again."""
NICENESS = 10


@click.command(cls=VerbosityCommand)
@cluster_and_configuration_options
@click.option(
    "--recording",
    metavar="FILE",
    help="What `--record` has written, to scroll back through; without --kubeconfig and --context, only that.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="PORT", help="0: any that is free.")
@click.option(
    "--bind",
    "bind_address",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. Elsewhere than on the loopback interface, TLS is required, and the cluster's users sign in.",
)
@click.option("--tls-cert-file", metavar="FILE", default="", help="The certificate to serve with.")
@click.option("--tls-private-key-file", metavar="FILE", default="", help="Its key.")
@click.option(
    "--allow-actions", is_flag=True, help="Let users cordon nodes, delete and create pods, by their own rights."
)
@click.option(
    "--follow-scheduler", is_flag=True, hidden=True, help="Use --config only until the scheduler's own is known."
)
@click.option("--until-stdin-closes", is_flag=True, hidden=True, help="End with the process that started this one.")
@verbosity_option
def web(source: ExplainedSource, **flags: Any) -> None:
    """Serve a page that shows a cluster, its queue, and why pods are where they are, until Ctrl-C.

    The link that is printed holds a secret: its bearer sees what your kubeconfig may read. Nothing is written to the
    cluster unless --allow-actions is given. A cluster that runs is listed and watched; a file is read once.

    \b
    Example:
      mooring web
      mooring web --cluster prod.snapshot
      mooring web --bind 0.0.0.0 --port 8443 --tls-cert-file web.crt --tls-private-key-file web.key
    """
    given = PageFlags(**flags)
    given.check(source)
    limit_own_memory()
    if given.until_stdin_closes:
        log.configure(process="page")
    if given.is_of_file(source):
        _serve_file(source, given)
    else:
        _give_way()
        run_until_signalled(
            lambda stop: _serve(
                _live(source, follow_scheduler=given.follow_scheduler or source.config_file is None),
                stop,
                given,
                is_configured=source.config_file is not None,
            ),
            SHUTDOWN_SECONDS,
        )


def _give_way() -> None:
    """On a busy machine, to the schedulers and API servers there: what is watched must not become slower by it.

    A process of the policy batch does not preempt others when the watch wakes it, so it reads more events at once.
    """
    os.nice(NICENESS)
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):  # a container may forbid it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


@dataclass(frozen=True)
class PageFlags:
    """As given on the command line."""

    port: int
    recording: str | None
    bind_address: str
    tls_cert_file: str
    tls_private_key_file: str
    allow_actions: bool
    follow_scheduler: bool
    until_stdin_closes: bool

    @property
    def is_local(self) -> bool:
        from mooring.web.server import is_loopback

        return is_loopback(self.bind_address)

    def is_of_file(self, source: ExplainedSource) -> bool:
        """Whether no cluster that runs is shown."""
        return source.file is not None or (
            self.recording is not None and source.kubeconfig is None and source.context is None
        )

    def check(self, source: ExplainedSource) -> None:
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            raise click.UsageError("--tls-cert-file and --tls-private-key-file belong together.")
        if self.recording is not None and source.file is not None:
            raise click.UsageError("--cluster and --recording exclude each other: each is a cluster in a file.")
        if self.allow_actions and self.is_of_file(source):
            raise click.UsageError("--allow-actions needs a cluster that runs; a file is only read.")
        if self.is_local:
            return
        if not self.tls_cert_file:
            raise click.UsageError(
                f"--bind {self.bind_address} is not on the loopback interface: it needs --tls-cert-file and "
                "--tls-private-key-file, as users send their tokens."
            )
        if self.is_of_file(source):
            raise click.UsageError(
                f"--bind {self.bind_address} needs a cluster that runs, which reviews what users may see; serve a file "
                "on the loopback interface."
            )


def _serve_file(source: ExplainedSource, given: PageFlags) -> None:
    from mooring.base.clock import SystemClock
    from mooring.snapshots import is_snapshot
    from mooring.web.mirror import file_mirror
    from mooring.web.used_configuration import UsedConfiguration

    kind: Any = "recording"
    configuration = None
    if given.recording is not None:
        cluster, configuration = _last_recorded(given.recording)
    else:
        cluster = source.read_file()
        kind = "snapshot" if source.file is not None and is_snapshot(source.file) else "file"
    # Outside the server's event loop: the recomputation has one of its own.
    with source.recomputation(cluster, configuration) as recomputation:
        is_configured = source.config_file is not None
        used = UsedConfiguration(since=SystemClock().now())
        if is_configured:
            used = UsedConfiguration(origin="file", file=source.config_file or "", since=used.since)
        elif configuration is not None:
            used = UsedConfiguration(origin="recording", file=given.recording or "", since=used.since)
        name = given.recording or source.file or ""
        mirror = file_mirror(name, kind, recomputation, source.registry(), used)

        async def main(stop: Stop) -> None:
            await _serve(contextlib.nullcontext(mirror), stop, given, is_configured=is_configured)

        run_until_signalled(main, SHUTDOWN_SECONDS)


def _last_recorded(path: str) -> tuple[Cluster, dict[str, Any] | None]:
    """The cluster at the last decision of a recording, and the configuration that made it."""
    from mooring.recording import Recording
    from mooring.replay import cluster_at

    recording = Recording.read(path)
    if not recording.decisions:
        raise OperatorMistake(f"The recording {path} has no decisions.")
    last = len(recording.decisions) - 1
    return cluster_at(recording, last), recording.configuration_at(last) or None


@contextlib.asynccontextmanager
async def _live(source: ExplainedSource, *, follow_scheduler: bool) -> AsyncIterator[Mirror]:
    from mooring.base.clock import SystemClock
    from mooring.web.mirror import live_mirror
    from mooring.web.used_configuration import ConfigurationFollower, UsedConfiguration

    connection, registry, clock = source.connection(), source.registry(), SystemClock()
    if follow_scheduler:
        response = await asyncio.to_thread(_configured_scheduler, connection.server)
        source = source.with_gates(response.get("featureGates", {}))
    reading = functools.partial(_read_scheduler, connection.server, source)
    if not follow_scheduler:
        reading = functools.partial(_read_file, source, registry)
    # As the scheduler here decides, if there is one.
    found = await asyncio.to_thread(reading)
    loaded = source.loaded(None, registry) if found is None else None
    if found is not None:
        loaded, registry = found.load()
    assert loaded is not None
    used = UsedConfiguration(since=clock.now())
    if found is not None:
        used = UsedConfiguration(origin=found.origin, file=found.file, since=clock.now())
    elif source.config_file is not None:
        used = UsedConfiguration(origin="file", file=source.config_file, since=clock.now())
    async with live_mirror(connection, loaded, registry, source.gates, used) as mirror:
        follower = ConfigurationFollower(mirror, reading, clock.now, content=found.content if found else None)
        following = asyncio.create_task(follower.run(), name="follow the configuration")
        try:
            yield mirror
        finally:
            following.cancel()
            await asyncio.wait([following])


def _read_scheduler(server: str, source: ExplainedSource) -> ReadConfiguration | None:
    """The configuration of a scheduler of this user on this machine, and which code its plugins are."""
    from mooring.web.used_configuration import ReadConfiguration
    from mooring.why.pod_document import decides_by

    response = _configured_scheduler(server)
    if not response:
        return None

    def load() -> tuple[Configuration, Registry]:
        # Plugin files that have changed are run again: the scheduler has done so, too.
        of_scheduler, configuration, refused = source.deciding_by(decides_by(response))
        registry = of_scheduler.registry()
        try:
            return of_scheduler.loaded(configuration, registry), registry
        except OperatorMistake as error:
            if not refused:
                raise
            raise OperatorMistake(f"{'; '.join(refused)}.") from error

    return ReadConfiguration("scheduler", (response["configuration"], response.get("pluginCode")), load)


def _configured_scheduler(server: str) -> dict[str, Any]:
    """The response of a scheduler of this user on this machine that shows its configuration; empty without one."""
    from mooring.scheduler.introspection.explain_client import query

    responses = query(server, {"explain": "", "configuration": True}).responses
    return next((each for each in responses if each.get("configuration")), {})


def _read_file(source: ExplainedSource, registry: Registry) -> ReadConfiguration | None:
    """The file of --config. What is half written is invalid, and read again when it is whole."""
    from mooring.web.used_configuration import ReadConfiguration

    assert source.config_file is not None
    try:
        content = Path(source.config_file).read_bytes()
    except OSError:
        return None
    return ReadConfiguration("file", content, lambda: (source.loaded(None, registry), registry), source.config_file)


async def _serve(
    source: contextlib.AbstractAsyncContextManager[Mirror], stop: Stop, given: PageFlags, *, is_configured: bool
) -> None:
    from mooring.base.clock import SystemClock
    from mooring.client import ApiClient
    from mooring.scheduler.serving.certificates import ServingCertificates, TlsOptions
    from mooring.scheduler.serving.reviews import ClusterReviews
    from mooring.web.access import OperatorAccess, PageAccess
    from mooring.web.api import Api
    from mooring.web.cluster_access import ClusterAccess
    from mooring.web.server import LOCAL_NAMES, WebOptions, WebServer

    if given.until_stdin_closes:
        end_with_stdin(stop)
    clock = SystemClock()
    certificates = None
    if given.tls_cert_file:
        files = TlsOptions(cert_file=given.tls_cert_file, key_file=given.tls_private_key_file)
        try:
            certificates = ServingCertificates(files, [given.bind_address], clock.now())
        except OperatorMistake as error:
            raise OperatorMistake("the page cannot be served over HTTPS.", error.problems) from error
    async with contextlib.AsyncExitStack() as stack:
        mirror = await stack.enter_async_context(source)
        operator = OperatorAccess()
        access: PageAccess = operator
        if not given.is_local:
            assert mirror.connection is not None
            client = await stack.enter_async_context(ApiClient(mirror.connection, user_agent="mooring web"))
            access = ClusterAccess(clock, ClusterReviews(client), lambda: list(mirror.pods.namespaces))
        host = f"[{given.bind_address}]" if ":" in given.bind_address else given.bind_address
        options = WebOptions(
            bind_address=given.bind_address,
            port=given.port,
            context=certificates.context if certificates is not None else None,
            hosts=(*LOCAL_NAMES, host) if given.is_local else None,
        )
        api = Api(mirror, allow_actions=given.allow_actions, recording=given.recording, is_configured=is_configured)
        server = WebServer(api, access, options)
        await stack.enter_async_context(server.serving())
        if given.is_local:
            print_line(f"{server.url}#token={operator.token}")
        else:
            print_line(server.url)
            print_line("Users sign in with a token of the cluster, such as `kubectl create token NAME` prints.")
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_SECONDS):
                    await stop.wait()
            if certificates is not None:
                certificates.refresh(clock.now())
