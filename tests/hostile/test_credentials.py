"""Credentials in the configuration, kubeconfig and environment: no failure shows them, whichever way it is read.

Every credential holds a marker. What a tenant can read (events, conditions), an operator (log, explain, errors,
doctor), and a program (pages, metrics, traces) is searched for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import subprocess
import sys
import urllib.error
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest
import yarl
from aiohttp import web
from tests.cli.programs import clean_environment
from tests.ports import free_ports
from tests.scheduler.conftest import HEAD, Live, a_configuration, a_live_scheduler, a_profile
from tests.scheduler.extenders.conftest import ExtenderServer, an_extender, calling

from mooring.base import log
from mooring.base.errors import Fault
from mooring.cli.main import exit_code
from mooring.cli.serving import served_pages
from mooring.cli.tracing import tracing_options
from mooring.client import ApiClient, Connection, load_kubeconfig
from mooring.client.execplugin import run_plugin
from mooring.config import load_configuration
from mooring.config.as_v1 import as_v1
from mooring.explain import in_full
from mooring.framework import Args, Background, Cycle, Http, NodeView, Plugin, Pod, Rejection
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.metrics.tracing import OtlpTracer
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.scheduler.serving.metric_filter import MetricFilter
from mooring.scheduler.serving.pages import RequestedForm, flagz

MARK = "S3CR3T"
USER = f"{MARK}user:{MARK}pass@"
QUERY = f"?apikey={MARK}key#{MARK}frag"


def assert_hidden(*texts: object) -> None:
    for text in texts:
        whole = text if isinstance(text, str) else json.dumps(text, default=str)
        assert MARK not in whole, whole
        assert MARK.lower() not in whole.lower(), whole


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch, private_runtime_folder: None) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


# Extenders: everything that a live scheduler writes about one that fails.

Broken = Callable[[ExtenderServer], str]
"""Prepares the extender and returns its urlPrefix."""


def with_credentials(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{USER}{rest}{QUERY}"


def absent(_: ExtenderServer) -> str:
    return f"http://{USER}127.0.0.1:{free_ports(1)[0]}/ext{QUERY}"


def responding(respond: Callable[[ExtenderServer], Any]) -> Broken:
    def prepared(extender: ExtenderServer) -> str:
        # The query swallows the verb, as it does for kube-scheduler: the last step of the path is the prefix's.
        extender.on["extend"] = lambda _: respond(extender)
        return with_credentials(extender.url)

    return prepared


def redirected(extender: ExtenderServer) -> web.Response:
    return web.Response(status=302, headers={"Location": with_credentials(extender.url)})


def redirected_to_no_address(extender: ExtenderServer) -> web.Response:
    return web.Response(status=302, headers={"Location": f"http://{USER}127.0.0.1:{MARK}/{QUERY}"})


async def never(_: ExtenderServer) -> Any:
    await asyncio.Event().wait()


BROKEN: dict[str, Broken] = {
    "it does not run": absent,
    "its port is no number": lambda _: f"http://{USER}127.0.0.1:{MARK}port/ext{QUERY}",
    "its port is too large": lambda _: f"http://{USER}127.0.0.1:99999/ext{QUERY}",
    "its host is none": lambda _: f"http://{USER}[::{MARK}/ext{QUERY}",
    "its password has a slash": lambda _: f"http://{MARK}:{MARK}/{MARK}@127.0.0.1:1/ext{QUERY}",
    "its scheme is unknown": lambda _: f"ftp://{USER}127.0.0.1:1/ext{QUERY}",
    "it has no scheme": lambda _: f"{USER}127.0.0.1:1/ext{QUERY}",
    "its name is unknown": lambda _: f"http://{USER}x.invalid/ext{QUERY}",
    "it fails": responding(lambda _: web.Response(status=500, text=MARK)),
    "it returns no JSON": responding(lambda _: web.Response(text="[")),
    "its error holds its address": responding(lambda extender: {"Error": f"cannot: {with_credentials(extender.url)}"}),
    "its error holds its key": responding(lambda _: {"Error": f"bad key {MARK}key"}),
    "it redirects for ever": responding(redirected),
    "it redirects to no address": responding(redirected_to_no_address),
    "it never responds": responding(never),
}


async def everything_about(live: Live, name: str) -> str:
    """What tenants, operators and programs can read about a pod and its scheduler."""
    scheduler = live.scheduler
    pages = served_pages(scheduler, None, MetricFilter(), {})
    shown = [page.reply(RequestedForm()).body for page in pages.values()]
    assert scheduler.explain_socket is not None
    response = scheduler.explain_socket._respond({"explain": f"default/{name}"})
    found = {"pod": f"default/{name}", "profile": "default-scheduler", "node": None, "phase": "Pending", **response}
    return "\n".join(
        [
            json.dumps(await live.events(name)),
            str(live.pods[name].status),
            json.dumps(response, default=str),
            in_full(found),
            *(body if isinstance(body, str) else body.decode() for body in shown),
        ]
    )


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
async def test_an_extender_shows_only_scheme_host_port_and_path_when(server, capfd, broken):
    log.configure(verbosity=10)
    async with an_extender() as extender:
        await assert_fails_discreetly(server, capfd, broken(extender))


PROXIES = {
    "is not there": lambda: f"http://{USER}127.0.0.1:{free_ports(1)[0]}/{QUERY}",
    "has a port that is none": lambda: f"http://{USER}127.0.0.1:{MARK}/{QUERY}",
    "has no scheme": lambda: f"{USER}127.0.0.1:1",
}


@pytest.mark.parametrize("proxy", PROXIES.values(), ids=PROXIES.keys())
async def test_an_extender_is_called_through_a_proxy_that(server, capfd, monkeypatch, proxy):
    log.configure(verbosity=10)
    monkeypatch.setenv("HTTP_PROXY", proxy())
    await assert_fails_discreetly(server, capfd, f"http://{USER}extender.example/ext{QUERY}")


async def assert_fails_discreetly(server: Any, capfd: Any, prefix: str) -> None:
    config = calling({"urlPrefix": prefix, "filterVerb": "filter", "httpTimeout": "300ms"})
    async with a_live_scheduler(server, config) as live:
        await live.node("node-1")
        await live.pod("web")
        message = await live.refused("web")
        assert "extender" in message
        assert_hidden(message, await everything_about(live, "web"))
    out, err = capfd.readouterr()
    assert "extender" in err
    assert_hidden(out, err)


async def test_the_address_that_is_shown_is_of_use(server):
    port = free_ports(1)[0]
    config = calling({"urlPrefix": f"http://{USER}127.0.0.1:{port}/ext{QUERY}", "filterVerb": "filter"})
    async with a_live_scheduler(server, config) as live:
        await live.node("node-1")
        await live.pod("web")
        assert f"extender http://127.0.0.1:{port}/ext cannot be called for filter" in await live.refused("web")


# Plugins: their own errors hold addresses too.


class Rude(Plugin):
    """Sends requests by itself, and lets the errors of HTTP libraries through."""

    def __init__(self, background: Background, http: Http) -> None:
        self._background, self._http = background, http

    async def start(self) -> None:
        self._background.run(self._work)
        raise Fault(str(await self._failure()))

    async def _failure(self) -> str:
        try:
            await self._http.get(f"http://{USER}127.0.0.1:{MARK}/{QUERY}", headers={"Authorization": MARK})
        except Fault as error:
            return str(error)
        raise AssertionError("that is no port")

    async def _work(self) -> None:
        raise aiohttp.InvalidURL(f"http://{USER}host:x/{QUERY}")

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        raise urllib.error.HTTPError(f"http://{USER}h/{QUERY}", 500, f"of http://{USER}h/{QUERY}", None, None)  # type: ignore[arg-type]


async def test_errors_of_http_libraries_in_plugins_are_cut(server, capfd):
    config = a_configuration(a_profile("default-scheduler", plugins=["Rude"]))
    async with a_live_scheduler(server, config, [Rude]) as live:
        await live.node("node-1")
        await live.pod("web")
        message = await live.refused("web")
        assert "HTTPError" in message
        assert_hidden(message, await everything_about(live, "web"))
    err = capfd.readouterr().err
    assert "Plugin failed to start" in err
    assert "Background task failed" in err
    assert_hidden(err)


ADDRESSES = [
    f"http://{USER}127.0.0.1:1/{QUERY}",
    f"http://{USER}127.0.0.1:{MARK}/{QUERY}",
    f"http://{USER}[::{MARK}/{QUERY}",
    f"ftp://{USER}127.0.0.1/{QUERY}",
    f"{USER}127.0.0.1",
    f"http://{MARK}:{MARK}/{MARK}@127.0.0.1:1/",
    f"//{USER}x",
    f"http://{MARK}",
]


@pytest.mark.parametrize("url", ADDRESSES[:-1])
@pytest.mark.parametrize("proxy", ["", f"http://{USER}127.0.0.1:1", f"http://{USER}127.0.0.1:{MARK}", f"{USER}[x"])
async def test_the_http_service_names_the_host_alone(monkeypatch, url, proxy):
    if proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        url = url.replace("127.0.0.1", "prometheus.example")
    fetcher = HttpFetcher()
    try:
        with pytest.raises(Fault) as caught:
            await fetcher.get(url, headers={"Authorization": f"Bearer {MARK}"}, timeout_seconds=2)
    finally:
        await fetcher.close()
    assert_hidden(str(caught.value))


# Traces.


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_tracing_endpoint_shows_only_its_host(capfd, url):
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{MARK},x-key={MARK}"}
    try:
        options = tracing_options(url, environment)
    except Exception as error:
        if url != f"http://{MARK}":
            assert_hidden(str(error))
        return
    assert options is not None
    if url == f"http://{MARK}":
        return  # a host alone holds no credential
    tracer = OtlpTracer(options)
    tracer._send([])
    err = capfd.readouterr().err
    assert "Failed to send traces" in err
    assert_hidden(err, repr(options))


def test_a_tracing_endpoints_password_is_sent_as_a_header():
    options = tracing_options("http://me:p%40ss@collector:4318", {})
    assert options is not None
    assert (options.url, options.headers) == (
        "http://collector:4318/v1/traces",
        {"Authorization": "Basic bWU6cEBzcw=="},
    )


# Pages.


class SecretArgs(Args):
    api_token: str = ""
    address: str = ""
    bearer_token_file: str = ""
    headers: dict[str, str] = {}


class Secretive(Plugin):
    def __init__(self, args: SecretArgs) -> None:
        self.args = args

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None


def a_secretive_file() -> str:
    args = {
        "apiToken": f"{MARK}token",
        "address": f"http://{USER}prometheus:9090/api{QUERY}",
        "bearerTokenFile": "/var/run/token",
        "headers": {"Authorization": f"Bearer {MARK}", "Accept": "text/plain"},
    }
    extender = {
        "urlPrefix": f"https://{USER}host:8080/ext{QUERY}",
        "filterVerb": "filter",
        "tlsConfig": {"insecure": True, "keyData": "UzNDUjNU", "certData": "Y2VydA=="},
    }
    profile = a_profile("p", plugins=["Secretive"], args=json.dumps([{"name": "Secretive", "args": args}]))
    return f"{a_configuration(profile)}\nextenders: {json.dumps([extender])}\n"


def test_configz_keeps_the_form_and_hides_credentials():
    registry = catalogue()
    registry.add(Secretive, "test")
    configuration = load_configuration(a_secretive_file(), source="test.yaml", registry=registry).configuration
    document = as_v1(configuration)
    assert_hidden(document)
    assert document["extenders"][0]["urlPrefix"] == "https://REDACTED@host:8080/ext?REDACTED#REDACTED"
    args = next(each["args"] for each in document["profiles"][0]["pluginConfig"] if each["name"] == "Secretive")
    assert args["address"] == "http://REDACTED@prometheus:9090/api?REDACTED#REDACTED"
    assert (args["apiToken"], args["bearerTokenFile"]) == ("REDACTED", "/var/run/token")
    assert args["headers"] == {"Authorization": "REDACTED", "Accept": "text/plain"}
    again = load_configuration(json.dumps(document), source="configz", registry=registry).configuration
    assert as_v1(again) == document
    assert json.dumps(as_v1(configuration, with_credentials=True)).count(MARK) >= 7


def test_flagz_shows_addresses_without_credentials():
    import click

    from mooring.cli.goflags import flags_of
    from mooring.cli.run import run

    context = run.make_context(
        "mooring run", [f"--master=https://{USER}host/{QUERY}", f"--tracing-endpoint=http://{USER}collector:4318"]
    )
    assert isinstance(context, click.Context)
    flags = flags_of(context)
    assert (flags["master"], flags["tracing-endpoint"]) == ("https://host/", "http://collector:4318")
    page = flagz(flags)
    assert_hidden(page.text(), page.fields())


# The command line: errors about a wrong kubeconfig, configuration or environment.


def a_kubeconfig(cluster: dict[str, Any], user: dict[str, Any]) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": f"{MARK}token", **user}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
    )


SERVER = "https://127.0.0.1:1"
NO_BASE64 = f"{MARK} is no base64"
KUBECONFIGS: dict[str, str] = {
    "a server with a password": a_kubeconfig({"server": f"https://{USER}127.0.0.1:6443{QUERY}"}, {}),
    "a server with a query": a_kubeconfig({"server": f"https://127.0.0.1:6443?k={MARK}"}, {}),
    "a server of another scheme": a_kubeconfig({"server": f"ftp://{USER}127.0.0.1"}, {}),
    "a server without a scheme": a_kubeconfig({"server": f"{USER}127.0.0.1:6443"}, {}),
    "a server whose port is none": a_kubeconfig({"server": f"https://{USER}127.0.0.1:{MARK}"}, {}),
    "a server whose host is none": a_kubeconfig({"server": f"https://{USER}[::{MARK}"}, {}),
    "a server that is not there": a_kubeconfig({"server": SERVER}, {}),
    "a proxy of another scheme": a_kubeconfig({"server": SERVER, "proxy-url": f"socks5://{USER}h:1"}, {}),
    "a proxy whose port is none": a_kubeconfig({"server": SERVER, "proxy-url": f"http://{USER}h:{MARK}"}, {}),
    "a proxy whose host is none": a_kubeconfig({"server": SERVER, "proxy-url": f"http://{USER}[h"}, {}),
    "a proxy that is not there": a_kubeconfig({"server": SERVER, "proxy-url": f"http://{USER}127.0.0.1:1/{QUERY}"}, {}),
    "a token and a password": a_kubeconfig({"server": SERVER}, {"username": "me", "password": MARK}),
    "a token that is no text": a_kubeconfig({"server": SERVER}, {"token": [MARK]}),
    "a password that is no text": a_kubeconfig({"server": SERVER}, {"password": {"is": MARK}}),
    "keys that are no base64": a_kubeconfig(
        {"server": SERVER}, {"client-key-data": NO_BASE64, "client-certificate-data": NO_BASE64}
    ),
    "a key that is none": a_kubeconfig(
        {"server": SERVER, "insecure-skip-tls-verify": True},
        {"client-key-data": "UzNDUjNU", "client-certificate-data": "UzNDUjNU"},
    ),
    "a program without a version": a_kubeconfig(
        {"server": SERVER}, {"exec": {"command": "x", "env": [{"name": "KEY", "value": MARK}]}}
    ),
    "an environment that is none": a_kubeconfig({"server": SERVER}, {"exec": {"command": "x", "env": [MARK]}}),
    "a program that fails": a_kubeconfig(
        {"server": SERVER, "insecure-skip-tls-verify": True},
        {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "interactiveMode": "Never",
                "command": "/bin/sh",
                "args": ["-c", f"echo $KEY and http://{USER}h/ >&2; exit 1"],
                "env": [{"name": "KEY", "value": f"{MARK}value"}],
            },
            "token": "",
        },
    ),
    "YAML that ends too early": f"users:\n- user: {{token: {MARK}, password: '{MARK}\n",
    "YAML with an unknown alias": f"users:\n- user: {{token: *{MARK}}}\n",
    "YAML with a tag": f"users:\n- user: {{token: !{MARK} x}}\n",
    "YAML with a tab": f"users:\n\t- {MARK}\n",
    "a text": MARK,
    "a list": f"[{MARK}]",
}
COMMANDS = {
    "explain": ["explain", "web", "--kubeconfig", "FILE"],
    "doctor": ["doctor", "--kubeconfig", "FILE"],
    "doctor as JSON": ["doctor", "--kubeconfig", "FILE", "--output=json"],
    "run": ["run", "--kubeconfig", "FILE", "--secure-port=0", "-v=10"],
    "nodes": ["nodes", "--kubeconfig", "FILE", "--nodes=0"],
    "authentication": ["run", "--master", SERVER, "--authentication-kubeconfig", "FILE", "--secure-port=0"],
}


@contextlib.contextmanager
def captured() -> Iterator[io.StringIO]:
    both = io.StringIO()
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        yield both


def ended(*arguments: str) -> tuple[int, str]:
    with captured() as both:
        try:
            code = exit_code(list(arguments))
        finally:
            log.configure(verbosity=0, format="text")
    return code, both.getvalue()


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize("text", KUBECONFIGS.values(), ids=KUBECONFIGS.keys())
def test_a_command_refuses_without_showing_credentials(tmp_path, monkeypatch, text, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "config").write_text(text)
    code, output = ended(*[str(tmp_path / "config") if each == "FILE" else each for each in arguments])
    assert code in (1, 2), output
    assert_hidden(output)


@pytest.mark.parametrize(
    "proxy", [f"http://{USER}127.0.0.1:1", f"{USER}127.0.0.1:{MARK}", f"ftp://{USER}h", f"{USER}[h"]
)
def test_a_proxy_of_the_environment_is_named_without_its_password(tmp_path, monkeypatch, proxy):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    (tmp_path / "config").write_text(a_kubeconfig({"server": "https://kubernetes.example:6443"}, {}))
    for arguments in (["explain", "web"], ["doctor"], ["run", "--secure-port=0"]):
        code, output = ended(*arguments, "--kubeconfig", str(tmp_path / "config"))
        assert code in (1, 2), output
        assert "proxy" in output.lower()
        assert_hidden(output)


MASTERS = [f"ftp://{USER}h{QUERY}", f"https://{USER}127.0.0.1:1/{QUERY}"]


@pytest.mark.parametrize("master", MASTERS)
def test_a_master_is_named_without_its_password(tmp_path, monkeypatch, master):
    monkeypatch.chdir(tmp_path)
    code, output = ended("run", f"--master={master}", "--secure-port=0")
    assert code in (1, 2), output
    assert_hidden(output)


NO_ADDRESS = f"http://{USER}h:{MARK}{QUERY}"
CONFIGURATIONS: dict[str, str] = {
    "an address that is a list": "extenders: [{urlPrefix: [S3CR3T], filterVerb: f}]",
    "a key that is no base64": "extenders: [{urlPrefix: 'http://h', tlsConfig: {keyData: 'S3CR3T !'}}]",
    "a key that is a number": "extenders: [{urlPrefix: 'http://h', tlsConfig: {keyData: 5}}]",
    "a timeout that is an address": f"extenders: [{{urlPrefix: 'http://h', httpTimeout: '{NO_ADDRESS}'}}]",
    "an extender that cannot work": f"extenders: [{{urlPrefix: '{NO_ADDRESS}', prioritizeVerb: p}}]",
    "Prometheus with a password": a_profile(
        "p",
        plugins=["NetworkTraffic"],
        args=f"[{{name: NetworkTraffic, args: {{prometheusAddress: 'http://{USER}h:9090'}}}}]",
    ),
    "Prometheus with a query": a_profile(
        "p",
        plugins=["NetworkTraffic"],
        args=f"[{{name: NetworkTraffic, args: {{prometheusAddress: 'http://h:9090{QUERY}'}}}}]",
    ),
    "Prometheus on no port": a_profile(
        "p",
        plugins=["NetworkTraffic"],
        args=f"[{{name: NetworkTraffic, args: {{prometheusAddress: '{NO_ADDRESS}'}}}}]",
    ),
    "Prometheus by FTP": a_profile(
        "p",
        plugins=["NetworkTraffic"],
        args=f"[{{name: NetworkTraffic, args: {{prometheusAddress: 'ftp://{USER}h'}}}}]",
    ),
    "Prometheus of a wrong type": a_profile(
        "p", plugins=["NetworkTraffic"], args=f"[{{name: NetworkTraffic, args: {{refreshSeconds: '{NO_ADDRESS}'}}}}]"
    ),
}


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_a_wrong_configuration_is_explained_without_its_credentials(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    is_profile = text.startswith("- ")
    (tmp_path / "scheduler.yaml").write_text(a_configuration(text) if is_profile else HEAD + text)
    for arguments in (
        ["config", "check", "scheduler.yaml"],
        ["run", "--config=scheduler.yaml", "--kubeconfig=none"],
        ["manifests", "--config=scheduler.yaml"],
        ["doctor", "--config=scheduler.yaml", "--kubeconfig=none"],
    ):
        code, output = ended(*arguments)
        assert code in (1, 2), output
        assert_hidden(output)


# Manifests: the configuration must be in them, so it must be in a Secret.


def test_a_configuration_with_credentials_is_deployed_as_a_secret(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prefix = f"http://{USER}host/ext{QUERY}"
    (tmp_path / "scheduler.yaml").write_text(
        a_configuration("- schedulerName: mine") + f"\nextenders: [{{urlPrefix: '{prefix}'}}]\n"
    )
    code, output = ended("manifests", "--config=scheduler.yaml", "--output=out")
    assert code == 0, output
    assert_hidden(output)
    holding = [file for file in (tmp_path / "out").iterdir() if MARK in file.read_text()]
    assert [file.name.partition("-")[2] for file in holding] == ["secret.yaml"]
    assert holding[0].stat().st_mode & 0o077 == 0
    everything = "".join(file.read_text() for file in (tmp_path / "out").iterdir())
    assert "kind: ConfigMap" not in everything
    assert "secretName: mine" in everything
    assert "configIsSecret: true" in ended("manifests", "--config=scheduler.yaml", "--helm-values")[1]


def test_a_configuration_without_any_stays_a_config_map(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scheduler.yaml").write_text(
        a_configuration("- schedulerName: mine") + "\nextenders: [{urlPrefix: 'http://h/x'}]\n"
    )
    assert "kind: ConfigMap" in ended("manifests", "--config=scheduler.yaml")[1]


# Connections.


async def test_an_api_server_that_fails_is_named_without_credentials(tmp_path):
    where = f"https://{USER}127.0.0.1:{free_ports(1)[0]}/{QUERY}"
    connection = Connection(
        server=where, source="test", proxy_url=f"http://{USER}127.0.0.1:1", token=MARK, password=MARK
    )
    assert_hidden(repr(connection), connection.host, connection.address, connection.proxy)
    async with ApiClient(connection) as client:
        with pytest.raises(Fault) as caught:
            await client.get(Pod.KIND, "web", "default")
    assert_hidden(str(caught.value))


async def test_a_proxy_that_wants_another_password_is_named_without_it():
    """aiohttp's own text has the proxy's whole address."""

    async def refuse(request: web.BaseRequest) -> web.Response:
        return web.Response(status=407)

    runner = web.ServerRunner(web.Server(refuse), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    proxy = f"http://{USER}127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with ApiClient(Connection(server="https://kubernetes.example", source="test", proxy_url=proxy)) as client:
            with pytest.raises(Fault) as caught:
                await client.get(Pod.KIND, "web", "default")
    finally:
        await runner.cleanup()
    assert "407" in str(caught.value)
    assert_hidden(str(caught.value))


async def test_metrics_name_the_host_alone():
    seen: list[str] = []

    class Observer:
        def responded(self, _method: str, host: str, *_: Any) -> None:
            seen.append(host)

        received = held_back = responded

    where = Connection(server=f"https://{USER}127.0.0.1:1/{QUERY}", source="test")
    async with ApiClient(where, observer=Observer()) as client:
        with pytest.raises(Fault):
            await client.get(Pod.KIND, "web", "default")
    assert seen == ["127.0.0.1:1"]


async def test_a_credential_programs_words_are_cut(tmp_path):
    (tmp_path / "config").write_text(KUBECONFIGS["a program that fails"])
    connection = load_kubeconfig([tmp_path / "config"])
    assert connection.exec is not None
    assert_hidden(repr(connection))
    with pytest.raises(Fault, match="failed \\(exit code 1\\)") as caught:
        await run_plugin(connection.exec, connection)
    assert "REDACTED and http://h/" in str(caught.value)
    assert_hidden(str(caught.value))


# What nothing caught.


def test_an_error_that_nothing_caught_is_shown_without_credentials(tmp_path):
    program = (
        "import asyncio, threading\n"
        "from mooring.cli.output import prepare\n"
        "prepare()\n"
        f"url = 'http://{USER}h/{QUERY}'\n"
        "def fail(): raise ValueError(f'bad {url}')\n"
        "thread = threading.Thread(target=fail); thread.start(); thread.join()\n"
        "async def main():\n"
        "    async def lost(): fail()\n"
        "    task = asyncio.create_task(lost()); await asyncio.sleep(0); del task\n"
        "asyncio.run(main())\n"
        "fail()\n"
    )
    file = tmp_path / "program.py"
    # The source line that a traceback shows must not hold the marker itself.
    file.write_text(
        "MARK = ''.join(['S3C', 'R3T'])\n"
        + program.replace(f"'http://{USER}h/{QUERY}'", "f'http://{MARK}:{MARK}@h/?k={MARK}'")
    )
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=clean_environment(tmp_path), check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("ValueError: bad http://h/") == 3, done.stderr
    assert_hidden(done.stderr)


def test_yarl_and_aiohttp_do_show_credentials_by_themselves():
    """Why their texts are cut."""
    url = yarl.URL(f"http://{USER}h/?k={MARK}")
    assert MARK in str(aiohttp.InvalidURL(url))
    assert MARK in str(url)
