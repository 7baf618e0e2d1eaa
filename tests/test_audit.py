"""`make audit`: known vulnerabilities in the lock fail it, unless a reason is stated that has not expired."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.test_packaging import locked

ROOT = Path(__file__).parents[1]

Respond = Callable[[dict[str, Any]], tuple[int, Any]]


@contextmanager
def a_service(respond: Respond) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """OSV's query interface on loopback: (URL, queries so far)."""
    queries: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            queries.append(query)
            status, body = respond(query)
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query", queries
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some entries of the lock, among them two versions of a package: a lookup of all takes a while."""
    lock = tmp_path_factory.mktemp("lock") / "few.txt"
    entries = re.split(r"^(?=[a-z])", (ROOT / "requirements/dev.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lock.write_text("".join(entry for entry in entries if entry.startswith(("aiohttp=", "numpy=", "pytest="))))
    return lock


def audit(
    service: str, lock: Path | None = None, ignored: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/audit"), "--service", service, "--timeout", "5"]
    if lock is not None:
        command += ["--lock", str(lock)]
    if ignored is not None:
        command += ["--ignored", str(ignored)]
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment.pop("REQUIRE_AUDIT", None)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment | env, timeout=120)


def known(package: str, version: str) -> Respond:
    """A service that knows one vulnerability."""

    def respond(query: dict[str, Any]) -> tuple[int, Any]:
        if (query["package"]["name"], query["version"]) != (package, version):
            return 200, {}
        events = [{"introduced": "0"}, {"fixed": "99.1"}]
        affected = {"package": query["package"], "ranges": [{"type": "ECOSYSTEM", "events": events}]}
        found = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "summary": "Bad parser.", "affected": [affected]}
        return 200, {"vulns": [found]}

    return respond


def version_of(package: str, lock: str = "runtime.txt") -> str:
    return str(locked(lock)[package][0])


AIOHTTP = known("aiohttp", version_of("aiohttp"))


def test_a_lock_without_known_vulnerabilities_passes_and_every_version_of_it_was_looked_up():
    with a_service(lambda _: (200, {})) as (service, queries):
        done = audit(service)
    looked_up = {(query["package"]["name"], query["version"]) for query in queries}
    assert done.returncode == 0, done.stderr
    assert "No known vulnerability" in done.stdout
    assert {(name, str(version)) for name, versions in locked("dev.txt").items() for version in versions} <= looked_up


VULNERABLE = {
    "at run time": ("runtime.txt", "aiohttp"),
    "in development only": ("dev.txt", "pytest"),
}


@pytest.mark.parametrize(("part", "lock", "package"), [(part, *where) for part, where in VULNERABLE.items()])
def test_a_known_vulnerability_fails_the_audit_and_is_named(few, part, lock, package):
    version = version_of(package, lock)
    with a_service(known(package, version)) as (service, _):
        done = audit(service, few)
    assert done.returncode == 1, done.stderr
    assert f"{package} {version} ({part}): PYSEC-2026-1, CVE-2026-1; fixed in 99.1" in done.stdout
    assert "Bad parser." in done.stdout


@pytest.mark.parametrize("version", locked("runtime.txt")["numpy"], ids=str)
def test_a_version_for_another_python_is_audited_too(few, version):
    with a_service(known("numpy", str(version))) as (service, _):
        assert audit(service, few).returncode == 1


def an_entry(**fields: object) -> str:
    entry = {
        "id": '"CVE-2026-1"',
        "package": '"aiohttp"',
        "reason": '"The parser is not used."',
        "expires": date.today() + timedelta(days=2),
    }
    lines = [f"{name} = {value}" for name, value in (entry | fields).items() if value is not None]
    return "\n".join(["[[vulnerability]]", *lines]) + "\n"


IGNORED = {
    "a reason counts until it expires": (an_entry(), 0, "The parser is not used."),
    "by its first name as well": (an_entry(id='"PYSEC-2026-1"'), 0, "Passed over until"),
    "an expired reason counts no more": (
        an_entry(expires=date(2026, 1, 31)),
        1,
        "since 2026-01-31: CVE-2026-1 in aiohttp",
    ),
    "it counts for that package": (an_entry(package='"yarl"'), 1, "remove it from the ignored ones: CVE-2026-1"),
    "it counts for that vulnerability": (an_entry(id='"CVE-2026-2"'), 1, "PYSEC-2026-1"),
}


@pytest.mark.parametrize(("text", "code", "words"), IGNORED.values(), ids=IGNORED.keys())
def test_what_may_be_passed_over(few, tmp_path, text, code, words):
    (tmp_path / "ignored.toml").write_text(text)
    with a_service(AIOHTTP) as (service, _):
        done = audit(service, few, tmp_path / "ignored.toml")
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout + done.stderr


MISTAKEN = {
    "without a reason": (an_entry(reason=None), "vulnerability[0] must have the fields id, package, reason, expires"),
    "with an empty reason": (an_entry(reason='" "'), "vulnerability[0].reason must be a str and not empty"),
    "without an end": (an_entry(expires='"never"'), "vulnerability[0].expires must be a date"),
    "not TOML": ("[[vulnerability]", "ignored.toml"),
}


@pytest.mark.parametrize(("text", "words"), MISTAKEN.values(), ids=MISTAKEN.keys())
def test_an_ignored_vulnerability_states_its_reason_and_its_end(tmp_path, text, words):
    (tmp_path / "ignored.toml").write_text(text)
    done = audit("http://127.0.0.1:9/", ignored=tmp_path / "ignored.toml")
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def without_a_listener() -> str:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}/v1/query"


def test_a_service_that_cannot_be_reached_is_a_skip_with_the_reason():
    done = audit(service := without_a_listener())
    assert done.returncode == 0
    assert f"SKIPPED: known vulnerabilities were not looked up: {service} cannot be reached: " in done.stdout


def test_a_skip_is_an_error_where_the_audit_is_required():
    assert audit(without_a_listener(), REQUIRE_AUDIT="1").returncode == 2


def test_a_service_that_refuses_is_a_skip():
    with a_service(lambda _: (403, {})) as (service, _):
        done = audit(service)
    assert done.returncode == 0
    assert "cannot be reached: 403" in done.stdout


def test_a_service_that_never_responds_is_a_skip_in_bounded_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = audit(f"http://127.0.0.1:{silent.getsockname()[1]}/v1/query")
    assert done.returncode == 0
    assert "SKIPPED" in done.stdout


def test_a_service_that_breaks_down_is_a_skip_and_no_pass(few):
    with a_service(lambda _: (200, {}) if first(queries) else (503, {})) as (service, queries):
        done = audit(service, few)
    assert done.returncode == 0
    assert "SKIPPED" in done.stdout
    assert "No known vulnerability" not in done.stdout


def first(queries: list[dict[str, Any]]) -> bool:
    return len(queries) == 1


def test_an_unreadable_response_is_an_error_and_no_skip(few):
    def respond(query: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"vulns": [{"no": "id"}]}

    with a_service(respond) as (service, _):
        done = audit(service, few)
    assert done.returncode == 2
    assert "pip-audit failed" in done.stderr


def test_ci_audits():
    assert "\nmake audit\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")
