"""What `mooring run` imports until its first request: most of the CPU time of a start is imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""
NOT_NEEDED = (
    "aiohttp",
    "cryptography",
    "hypothesis",
    "jsonschema",
    "mooring.apiserver",
    "mooring.bench",
    "mooring.cel",
    "mooring.deploy",
    "mooring.doctor",
    "mooring.explain",
    "mooring.scheduler.serving.server",
    "mooring.scheduler.shadow",
    "mooring.simulated",
    "mooring.testing",
    "re2",
)


def test_a_start_imports_nothing_that_a_default_run_does_not_need(tmp_path: Path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    kubeconfig.chmod(0o600)
    arguments = ["run", "--kubeconfig", str(kubeconfig), "--secure-port=0"]
    look = (
        f"import sys; from mooring.cli.main import exit_code; code = exit_code({arguments!r});"
        f"print(code, sorted(set({NOT_NEEDED!r}) & set(sys.modules)), 'mooring.scheduler.loop' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert "cannot reach the API server" in done.stderr
    assert done.stdout.splitlines()[-1] == "1 [] True"
