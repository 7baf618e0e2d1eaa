"""`mooring web`, and the page that `mooring up` starts: as programs."""

from __future__ import annotations

import json
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
