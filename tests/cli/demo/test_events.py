"""The events that the demo shows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mooring.cli.demo import scenario
from mooring.cli.demo.scenario import events_with


def an_event(pod: str) -> dict[str, Any]:
    return {"regarding": {"name": pod}, "reason": "Scheduled"}


class Client:
    """Lists these events, the last ones again and again."""

    def __init__(self, *lists: list[dict[str, Any]]) -> None:
        self.lists = list(lists)

    async def list(self, *_: Any) -> list[dict[str, Any]]:
        return self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenario, "LOOK_AGAIN_SECONDS", 0.0)


def test_the_event_of_another_process_is_waited_for():
    both = [an_event("web"), an_event("random")]
    client: Any = Client([], [an_event("web")], both)
    assert asyncio.run(events_with(client, "random")) == both


def test_an_event_that_does_not_come_is_left_out():
    client: Any = Client([an_event("web")])
    assert asyncio.run(events_with(client, "random")) == [an_event("web")]
