"""`mooring web`, and the page that `mooring up` starts: as programs."""

from __future__ import annotations

import json
import resource
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
from tests.cli.programs import Program, private_home

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "8"}}}]}
"""
LINK = "http://127.0.0.1:"
POLL_SECONDS = 0.1
"""Between requests: more than fifty a second of one client are refused."""


def fetched(link: str, path: str) -> Any:
    address, _, token = link.partition("#token=")
    request = urllib.request.Request(f"{address}api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


def link_of(line: str) -> str:
    return line[line.index(LINK) :]


def test_a_file_is_served_until_the_program_is_ended():
    with private_home() as home:
        (home / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
        with Program("web", "--cluster=cluster.yaml", home=home) as program:
            link = link_of(program.mentions(LINK))
            assert fetched(link, "cluster")["counts"] == {"nodes": 1, "pods": 1, "pending": 1, "bound": 0}
            most, _ = resource.prlimit(program.process.pid, resource.RLIMIT_DATA)
            assert 0 < most < 2**62  # a what-if that was mistyped does not take the memory of the machine
            with urllib.request.urlopen(link.partition("#")[0], timeout=20) as page:
                assert page.headers["Content-Type"] == "text/html; charset=utf-8"
            assert program.end() == 0


def test_up_prints_the_link_of_a_page_that_ends_with_it():
    with private_home() as home:
        (home / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
        with Program("up", "--cluster=cluster.yaml", "--web", home=home) as program:
            program.ready()
            link = link_of(program.mentions(LINK))
            assert fetched(link, "cluster")["source"] == "live"
            assert fetched(link, "queue")["groups"][0]["reason"] == "the only node has too little cpu"
            assert program.end() == 0
        with pytest.raises(urllib.error.URLError):
            fetched(link, "cluster")


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def weighted(weight: int) -> str:
    return f"{HEAD}profiles: [{{plugins: {{score: {{enabled: [{{name: NodeResourcesFit, weight: {weight}}}]}}}}}}]\n"


def configured(link: str, origin: str, weight: int) -> None:
    """Wait until the page decides with this weight."""
    deadline = time.monotonic() + 60
    while True:
        cluster = fetched(link, "cluster")
        plugins = {each["name"]: each["weight"] for each in cluster["profiles"][0]["plugins"]}
        if (cluster["configuration"]["origin"], plugins["NodeResourcesFit"]) == (origin, weight):
            return
        assert time.monotonic() < deadline, cluster["configuration"]
        time.sleep(POLL_SECONDS)


def test_the_page_follows_the_configuration_that_the_scheduler_reloads():
    with private_home() as home:
        file = home / "scheduler.yaml"
        file.write_text(weighted(3), encoding="utf-8")
        flags = ["--nodes=1", "--web", "--config=scheduler.yaml", "--watch-config"]
        with Program("up", *flags, home=home) as program:
            program.ready()
            link = link_of(program.mentions(LINK))
            configured(link, "scheduler", 3)
            file.write_text(weighted(5), encoding="utf-8")
            configured(link, "scheduler", 5)
            assert program.end() == 0


OF_TIERS = f"""{HEAD}
profiles:
- plugins: {{multiPoint: {{enabled: [{{name: Tiers}}], disabled: [{{name: NodeResourcesFit}}]}}}}
"""
TIERS = """
from mooring.framework import Log, Plugin, Rejection

class Tiers(Plugin):
    def __init__(self, log: Log):
        log.info("Built")

    def filter(self, pod, node, cycle):
        return Rejection("node(s) are of the %s tier")
"""


def reason_becomes(link: str, reason: str) -> None:
    deadline = time.monotonic() + 60
    while (found := fetched(link, "queue")["groups"][0]["reason"]) != reason:
        assert time.monotonic() < deadline, found
        time.sleep(POLL_SECONDS)


def test_the_page_runs_the_code_that_the_scheduler_reloads():
    with private_home() as home:
        (home / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
        (home / "c.yaml").write_text(OF_TIERS, encoding="utf-8")
        (home / "tiers.py").write_text(TIERS % "old", encoding="utf-8")
        flags = ["--cluster=cluster.yaml", "--web", "--config=c.yaml", "--plugins=tiers.py"]
        with Program("up", *flags, "--watch-config", "--reload-plugins", home=home) as program:
            program.ready()
            link = link_of(program.mentions(LINK))
            reason_becomes(link, "the only node is of the old tier")
            assert program.mentions('page/Tiers] "Built"')
            (home / "tiers.py").write_text(TIERS % "new", encoding="utf-8")
            reason_becomes(link, "the only node is of the new tier")
            nearest = fetched(link, "pods/default/web")["recomputed"]["nearest"]
            assert {reason for miss in nearest for reason in miss["reasons"]} == {"node(s) are of the new tier"}
            assert program.end() == 0


def test_a_page_without_plugins_runs_those_of_the_scheduler():
    with private_home() as home:
        (home / "c.yaml").write_text(OF_TIERS, encoding="utf-8")
        (home / "tiers.py").write_text(TIERS % "old", encoding="utf-8")
        (home / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
        flags = ["--cluster=cluster.yaml", "--config=c.yaml", "--plugins=tiers.py"]
        with Program("up", *flags, "--no-web", home=home) as up:
            up.ready()
            with Program("web", "--kubeconfig=mooring.kubeconfig", home=home) as program:
                reason_becomes(link_of(program.mentions(LINK)), "the only node is of the old tier")
                assert program.end() == 0
            assert up.end() == 0


def test_a_page_with_a_configuration_of_its_own_reads_it_again():
    with private_home() as home:
        file = home / "mine.yaml"
        file.write_text(weighted(3), encoding="utf-8")
        with Program("up", "--nodes=1", "--no-web", home=home) as up:
            up.ready()
            with Program("web", "--kubeconfig=mooring.kubeconfig", "--config=mine.yaml", home=home) as program:
                link = link_of(program.mentions(LINK))
                configured(link, "file", 3)
                file.write_text("kind: nothing", encoding="utf-8")
                program.mentions("keeps its earlier configuration")
                file.write_text(weighted(5), encoding="utf-8")
                configured(link, "file", 5)
                assert program.end() == 0
            assert up.end() == 0


MISTAKES = {
    "elsewhere without TLS": (["--bind=0.0.0.0"], "--tls-cert-file"),
    "elsewhere with a file": (
        ["--bind=0.0.0.0", "--cluster=c.yaml", "--tls-cert-file=c", "--tls-private-key-file=k"],
        "a cluster that runs",
    ),
    "a certificate without its key": (["--tls-cert-file=c"], "belong together"),
    "actions on a file": (["--cluster=c.yaml", "--allow-actions"], "a cluster that runs"),
    "a file and a kubeconfig": (["--cluster=c.yaml", "--kubeconfig=k"], "--cluster is a file"),
}


@pytest.mark.parametrize(("flags", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(mooring, flags, sentence):
    result = mooring("web", *flags)
    assert result.code == 2
    assert sentence in result.err
