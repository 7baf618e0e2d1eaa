"""A real Prometheus that scrapes a real node exporter for each simulated node, with the traffic that you name.

    python examples/network-traffic/traffic.py node-1=14000000 node-2=1200000 node-3=1000

Simulated nodes have no network interfaces, so each exporter reads its number from a file. Needs Debian's `prometheus`
and `prometheus-node-exporter`, on the PATH or where `scripts/install-debian` puts them. Ctrl-C ends everything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

METRIC = "node_network_receive_bytes_total"
PATIENCE_SECONDS = 60.0


def find(program: str) -> str:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.environ.get("MOORING_CACHE") or caches / "mooring")
    path = shutil.which(program) or cache / "debian" / program / "usr" / "bin" / program
    if not os.access(path, os.X_OK):
        sys.exit(f"There is no {program} on the PATH or at {path}; scripts/install-debian gets it.")
    return str(path)


class Server:
    """A program that serves on a port of this machine, until the end of the `with`."""

    def __init__(self, *command: str) -> None:
        self._program = command[0]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        try:
            self.address = self._listens()
        except BaseException:  # Ctrl-C too: nothing stays behind
            self._process.terminate()
            raise
        # Its later output is read, so that it never blocks on a full pipe.
        assert self._process.stderr is not None
        self._reader = threading.Thread(target=self._process.stderr.read)
        self._reader.start()

    def _listens(self) -> str:
        written = []
        assert self._process.stderr is not None
        for line in self._process.stderr:
            written.append(line)
            if found := re.search(r'"Listening on" address=(\S+)', line):
                return found[1]
        sys.exit(f"{self._program} did not start:\n{''.join(written)}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()


def exporter(node: str, received: int, device: str, folder: Path) -> Server:
    (folder / node).mkdir()
    (folder / node / "traffic.prom").write_text(f'{METRIC}{{device="{device}"}} {received}\n', encoding="utf-8")
    return Server(
        find("prometheus-node-exporter"),
        "--web.listen-address=127.0.0.1:0",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={folder / node}",
    )


def prometheus(exporters: dict[str, Server], port: int, folder: Path) -> Server:
    targets = [{"targets": [each.address], "labels": {"kubernetes_node": node}} for node, each in exporters.items()]
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "node-exporter", "static_configs": targets}],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return Server(
        find("prometheus"),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    )


def wait_for_samples(address: str, count: int) -> None:
    url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": METRIC})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), direct.open(url, timeout=5) as response:
            if len(json.load(response)["data"]["result"]) == count:
                return
        time.sleep(0.1)
    sys.exit(f"Prometheus has no samples of all {count} nodes after {PATIENCE_SECONDS:g} s.")


def traffic(text: str) -> tuple[str, int]:
    node, _, received = text.partition("=")
    if not node or not received.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a node and its bytes, such as node-1=1000000, not {text!r}")
    return node, int(received)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traffic", nargs="+", type=traffic, metavar="NODE=BYTES")
    parser.add_argument("--port", type=int, default=19090, help="the port of Prometheus (default: %(default)s)")
    parser.add_argument(
        "--device", default="ens192", help="the interface that the traffic is of (default: %(default)s)"
    )
    options = parser.parse_args()
    # Both, like Ctrl-C, end the `with` below.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        contextlib.suppress(KeyboardInterrupt),
        tempfile.TemporaryDirectory(prefix="traffic-") as name,
        contextlib.ExitStack() as running,
    ):
        folder, exporters = Path(name), {}
        for node, received in dict(options.traffic).items():
            server = exporters[node] = running.enter_context(exporter(node, received, options.device, folder))
            print(f"{node} has received {received} bytes (exporter {server.pid})", flush=True)
        server = running.enter_context(prometheus(exporters, options.port, folder))
        wait_for_samples(server.address, len(exporters))
        print(f"Prometheus is ready at http://{server.address}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
