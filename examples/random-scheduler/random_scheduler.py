"""A scheduler from scratch, on `mooring.client` alone: pods with `schedulerName: random-scheduler` get a random node.

    python random_scheduler.py --kubeconfig mooring.kubeconfig --seed 7

Watch nodes and pods, take one pod from a queue, filter the nodes, score the rest, bind to the best, write an event.
Resources, taints and affinity mean nothing here; for those there are profiles and plugins.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import signal
import sys
from collections.abc import Callable

from mooring.base.clock import timestamp
from mooring.base.errors import MooringError, OperatorMistake
from mooring.base.visible import visible_lines
from mooring.client import ApiClient, ObjectCache, Reflector, find_connection
from mooring.objects import Kind, Node, Pod

NAME = "random-scheduler"
QUEUE_SIZE = 300
RETRY_SECONDS = 1.0
EVENTS = Kind("", "v1", "Event", "events")

log = logging.getLogger(NAME)


class RandomScheduler:
    def __init__(self, client: ApiClient, randomness: random.Random) -> None:
        self.client = client
        self.nodes: ObjectCache[Node] = ObjectCache(lambda node: log.info("New node is added. %s", node.name))
        self.pods: ObjectCache[Pod] = ObjectCache(self.offer)
        self.queue: asyncio.Queue[Pod] = asyncio.Queue(QUEUE_SIZE)
        self.predicates: list[Callable[[Pod, Node], bool]] = [lambda _pod, _node: randomness.randrange(2) == 0]
        self.priorities: list[Callable[[Pod, Node], int]] = [lambda _pod, _node: randomness.randrange(100)]
        self.tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Schedule until cancelled."""
        nodes = Reflector(self.client, Node, self.nodes)
        # A pod that is bound no longer matches: the watch reports it as deleted.
        pods = Reflector(self.client, Pod, self.pods, field_selector=f"spec.nodeName=,spec.schedulerName={NAME}")
        async with self.tasks:
            self.tasks.create_task(nodes.run())
            await nodes.synced.wait()
            self.tasks.create_task(pods.run())
            while True:
                await self.schedule_one(await self.queue.get())

    def offer(self, pod: Pod) -> None:
        """Queue the pod now or, while the queue is full, later."""
        try:
            self.queue.put_nowait(pod)
        except asyncio.QueueFull:
            self.tasks.create_task(self.offer_later(pod))

    async def offer_later(self, pod: Pod) -> None:
        await self.client.clock.sleep(RETRY_SECONDS)
        if pod in self.pods:
            self.offer(pod)

    async def schedule_one(self, pod: Pod) -> None:
        if pod not in self.pods:  # deleted while it was queued
            return
        log.info("found a pod to schedule: [%s]", pod.key)
        try:
            if (node := self.find_node(pod)) is not None:
                log.info("node %s is chosen for Pod [%s]", node, pod.key)
                await self.client.bind(pod.namespace, pod.name, pod.uid, node)
                message = f"pod [{pod.key}] is successfully scheduled to node {node}"
                log.info(message)
                await self.emit_event(pod, message)
                return
            log.info("cannot find a node that fits pod [%s]; trying again in %g s", pod.key, RETRY_SECONDS)
        except MooringError as error:
            log.info("failed to bind pod [%s]: %s; trying again in %g s", pod.key, error, RETRY_SECONDS)
        self.tasks.create_task(self.offer_later(pod))

    def find_node(self, pod: Pod) -> str | None:
        """The best of the nodes that pass every predicate; None if none does."""
        # In the order of names, so that the same seed makes the same choice.
        nodes = sorted(self.nodes.all(), key=lambda node: node.name)
        fitting = [node for node in nodes if all(fits(pod, node) for fits in self.predicates)]
        if not fitting:
            return None
        scores = {node.name: sum(priority(pod, node) for priority in self.priorities) for node in fitting}
        log.info("calculated priorities: %s", scores)
        return max(scores, key=scores.__getitem__)

    async def emit_event(self, pod: Pod, message: str) -> None:
        now = timestamp(self.client.clock.now())
        event = {
            "metadata": {"generateName": f"{pod.name}-", "namespace": pod.namespace},
            "involvedObject": {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "reason": "Scheduled",
            "message": message,
            "type": "Normal",
            "source": {"component": NAME},
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
        try:
            await self.client.create(EVENTS, event)
        except MooringError as error:  # the pod is bound all the same
            log.info("failed to emit the event of pod [%s]: %s", pod.key, error)


async def main(kubeconfig: str | None, seed: int | None) -> None:
    running = asyncio.current_task()
    assert running is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        async with ApiClient(find_connection(kubeconfig=kubeconfig), user_agent=NAME) as client:
            log.info("Start a scheduler")
            await client.server_version()  # fail now if there is no server
            await RandomScheduler(client, random.Random(seed)).run()
    except asyncio.CancelledError:
        log.info("Stopped")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Give every pod with schedulerName random-scheduler a random node.")
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: $KUBECONFIG, in-cluster, ~/.kube/config")
    parser.add_argument("--seed", type=int, metavar="N", help="make the same choices again")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%Y/%m/%d %H:%M:%S")
    try:
        asyncio.run(main(arguments.kubeconfig, arguments.seed))
    except MooringError as error:
        print(f"Error: {visible_lines(str(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, OperatorMistake) else 1)
