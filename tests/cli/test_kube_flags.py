"""Every flag of kube-scheduler v1.36 is taken by `mooring run`, with its default and its meaning.

`kube_scheduler_flags.json` is the /flagz of kube-scheduler v1.36.4 without flags.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from tests.cli.conftest import NOWHERE, Mooring, write

from mooring.base import log
from mooring.base.errors import OperatorMistake
from mooring.cli.goflags import flags_of
from mooring.cli.run import run

DEFAULTS: dict[str, str] = json.loads((Path(__file__).parent / "kube_scheduler_flags.json").read_text(encoding="utf-8"))

VALUES = {
    "bind-address": "127.0.0.1",
    "disabled-metrics": "scheduler_pending_pods,scheduler_goroutines",
    "allow-metric-labels": "scheduler_pending_pods,queue=active,backoff",
    "emulated-version": "kube=1.35",
    "min-compatibility-version": "1.35",
    "feature-gates": "kube:DRADeviceTaints=true",
    "http2-max-streams-per-connection": "100",
    "kube-api-burst": "7",
    "kube-api-qps": "7.5",
    "log-text-info-buffer-size": "1Ki",
    "log-json-info-buffer-size": "512",
    "logging-format": "json",
    "show-hidden-metrics-for-version": "1.35",
    "secure-port": "12345",
    "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "tls-curve-preferences": "29,23",
    "tls-min-version": "VersionTLS13",
    "tls-sni-cert-key": "a.crt,a.key:*.example.com,example.com",
    "v": "4",
    "version": "false",
    "vmodule": "scheduler=4",
}


def a_value(flag: str) -> str:
    """Another than the default, where there is another."""
    default = DEFAULTS[flag]
    if flag in VALUES:
        return VALUES[flag]
    if default in ("true", "false"):
        return "false" if default == "true" else "true"
    if default.endswith("s") and default[:1].isdigit():
        return "42s"
    return "something"


def read(*arguments: str) -> click.Context:
    return run.make_context("run", list(arguments))


@pytest.fixture(autouse=True)
def the_log_as_before():
    yield
    log.configure(verbosity=0, format="text")


@pytest.mark.parametrize("flag", sorted(DEFAULTS.keys() - {"help"}))
def test_every_flag_is_taken(flag):
    with read(f"--{flag}={a_value(flag)}") as ctx:
        assert flags_of(ctx)[flag] in (a_value(flag), f"[{a_value(flag)}]")


def test_without_flags_everything_is_as_kube_scheduler_has_it():
    with read() as ctx:
        ours = flags_of(ctx)
    assert {name: ours[name] for name in DEFAULTS} == DEFAULTS


def the_log_of(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    read(*arguments).close()
    return capfd.readouterr().err


IDLE = [
    "--http2-max-streams-per-connection=100",
    "--emulated-version=1.35",
    "--min-compatibility-version=1.34",
    "--show-hidden-metrics-for-version=1.35",
    "--vmodule=a=1,b*=2",
    "--log-flush-frequency=1s",
    "--log-text-info-buffer-size=1k",
    "--log-json-info-buffer-size=1Mi",
]


@pytest.mark.parametrize("argument", IDLE)
def test_a_flag_without_meaning_here_is_warned_about_once(capfd, argument):
    message = the_log_of(capfd, argument)
    assert message.count("has no meaning here") == 1
    assert argument.partition("=")[0] in message


@pytest.mark.parametrize(
    "argument",
    ["--disable-http2-serving", "--permit-address-sharing", "--emulated-version=1.36", "--log-flush-frequency=5s"],
)
def test_a_flag_that_requests_what_holds_anyway_is_not(capfd, argument):
    assert the_log_of(capfd, argument) == ""


WRONG = {
    "--vmodule=x": "must be pattern=N",
    "--emulated-version=1.30": "must be between 1.33 and 1.36",
    "--emulated-version=wardle=1.35": 'there is no component "wardle"',
    "--show-hidden-metrics-for-version=1.2": 'must be left out or be "1.35"',
    "--log-text-info-buffer-size=big": "must be a size",
    "--http2-max-streams-per-connection=-1": "must not be negative",
    "--secure-port=99999": "99999 is not in the range",
    "--version=x": "must be true or false",
    "--kube-api-qps=fast": "is not a valid float",
    "--logging-format=xml": "is not one of",
    "--v=-1": "-1 is not in the range",
}


@pytest.mark.parametrize(("argument", "message"), WRONG.items())
def test_an_invalid_value_of_a_flag_is_reported(mooring: Mooring, argument, message):
    result = mooring("run", argument)
    assert result.code == 2
    assert message in result.err


WRONG_TOGETHER = {
    "--bind-address=here": "must be an IP address",
    "--tls-curve-preferences=x": "must be whole numbers",
    "--tls-sni-cert-key=only.crt": "must be CERT,KEY",
    "--tls-sni-cert-key=a.crt,a.key:b:c": "must be CERT,KEY",
    "--authorization-always-allow-paths=/open/*,/a*b": '"/a*b": only a * at the end is allowed',
    "--allow-metric-labels=x": "must be METRIC,LABEL=VALUE",
    "--allow-metric-labels=x=y": '"x" must be METRIC,LABEL',
    "--allow-metric-labels-manifest=none.yaml": "none.yaml cannot be read",
    "--log-text-split-stream": "needs --feature-gates=LoggingAlphaOptions=true",
    "--authentication-kubeconfig=none.kubeconfig": "--authentication-kubeconfig",
    "--master=ftp://x": "must be an http or https address",
}


@pytest.mark.parametrize(("argument", "message"), WRONG_TOGETHER.items())
def test_what_makes_no_sense_is_reported_before_anything_begins(mooring: Mooring, argument, message):
    result = mooring("run", "--secure-port=1", "--kubeconfig", write("lost.kubeconfig", NOWHERE), argument)
    assert result.code == 2
    assert message in result.err


def written(mooring: Mooring, *arguments: str) -> tuple[dict[str, Any], str]:
    result = mooring("run", "--write-config-to=out.yaml", *arguments)
    assert result.code == 0, result.err
    return yaml.safe_load(Path("out.yaml").read_text(encoding="utf-8")), result.err


def test_the_completed_configuration_can_be_written_and_read_again(mooring: Mooring):
    document, message = written(
        mooring, "--leader-elect=false", "--kube-api-qps=7.5", "--kube-api-burst=9", "--profiling=false"
    )
    assert "Wrote configuration" in message
    assert document["leaderElection"]["leaderElect"] is False
    assert document["clientConnection"]["qps"] == 7.5
    assert document["clientConnection"]["burst"] == 9
    assert document["enableProfiling"] is False
    assert Path("out.yaml").stat().st_mode & 0o777 == 0o600
    Path("in.yaml").write_bytes(Path("out.yaml").read_bytes())
    assert written(mooring, "--config=in.yaml")[0] == document


def test_beside_a_file_older_flags_are_ignored_and_named(mooring: Mooring):
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    document, message = written(
        mooring, "--config", write("c.yaml", config), "--kube-api-qps=7", "--leader-elect=false"
    )
    assert document["clientConnection"]["qps"] == 0
    assert document["leaderElection"]["leaderElect"] is False
    assert "is ignored beside --config" in message
    assert "--kube-api-qps" in message


def test_a_file_that_cannot_be_written_is_named(mooring: Mooring):
    result = mooring("run", "--write-config-to=none/such.yaml")
    assert result.code == 2
    assert "the folder none of none/such.yaml does not exist" in result.err


@pytest.mark.parametrize(
    ("argument", "message"), [("--version", "Mooring "), ("--version=raw", 'kube-scheduler="v1.36"')]
)
def test_the_version_is_printed(mooring: Mooring, argument, message):
    result = mooring("run", argument)
    assert (result.code, message in result.out) == (0, True)


def test_the_version_of_another_is_not_taken_over(mooring: Mooring):
    document, message = written(mooring, "--version=v1.36.4-mine")
    assert document["parallelism"] == 16
    assert "Mooring reports its own version" in message


def test_information_can_go_to_a_stream_of_its_own(mooring: Mooring):
    try:
        result = mooring(
            "run",
            "--write-config-to=out.yaml",
            "--feature-gates=LoggingAlphaOptions=true",
            "--log-text-split-stream",
            "--kube-api-content-type=application/vnd.kubernetes.protobuf",
        )
    finally:
        log.settings().info_stream = None
    assert "Wrote configuration" in result.out
    assert "Mooring uses JSON" in result.err


def test_master_names_the_server(mooring: Mooring):
    result = mooring("run", "--kubeconfig", write("k", NOWHERE), "--master=https://127.0.0.1:2")
    assert "127.0.0.1:2" in result.err


def test_master_alone_needs_no_kubeconfig(mooring: Mooring):
    assert "127.0.0.1:2" in mooring("run", "--master=127.0.0.1:2").err


def test_flagz_shows_our_own_switches_too():
    """Empty would look as if it were unknown."""
    ours = flags_of(run.make_context("mooring run", ["--watch-config"]))
    assert [ours[name] for name in ("watch-config", "reload-plugins", "shadow")] == ["true", "false", "false"]


def test_removed_flags_of_serving_name_their_successor():
    with pytest.raises(OperatorMistake, match="use --secure-port"):
        read("--port=10251")
