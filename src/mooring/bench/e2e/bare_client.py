"""Posts bindings and decides nothing, in Python: where `scripts/bind-rate` was not built.

`python -m mooring.bench.e2e.bare_client` reads the same job from standard input and prints the same report.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import Any

from mooring.base.errors import Fault
from mooring.base.event_loop import EventLoop
from mooring.client import ApiClient, Connection


async def bind_all(job: dict[str, Any]) -> dict[str, Any]:
    """Bind the job's pods to its nodes in turn. Returns how many were bound, and how many failed and why."""
    pods, nodes, namespace = job["pods"], job["nodes"], job["namespace"]
    waiting, errors = iter(enumerate(pods)), list[str]()

    async def work() -> None:
        for number, pod in waiting:
            try:
                await client.bind(namespace, pod, "", nodes[number % len(nodes)])
            except Fault as error:
                errors.append(str(error))

    async with ApiClient(_connection(job), in_flight=job["inFlight"]) as client, asyncio.TaskGroup() as group:
        for _ in range(job["inFlight"]):
            group.create_task(work())
    report = {"bound": len(pods) - len(errors), "failed": len(errors)}
    return report | {"error": errors[0]} if errors else report


def _connection(job: dict[str, Any]) -> Connection:
    return Connection(
        server=job["server"],
        source="the job",
        ca_data=_bytes(job["ca"]),
        insecure_skip_tls_verify=job["insecure"],
        tls_server_name=job["serverName"] or None,
        token=job["token"] or None,
        client_cert_data=_bytes(job["certificate"]),
        client_key_data=_bytes(job["key"]),
    )


def _bytes(text: str) -> bytes | None:
    return base64.b64decode(text) or None


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=EventLoop) as runner:
        found = runner.run(bind_all(json.load(sys.stdin)))
    sys.stdout.write(json.dumps(found) + "\n")
    sys.exit(1 if found["failed"] else 0)
