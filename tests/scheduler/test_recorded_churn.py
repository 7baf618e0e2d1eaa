"""Whatever happens, what was recorded of it takes every decision again.

Pods and nodes come, go and change on the embedded cluster while plugins reject, raise and wait; nodes are removed and
their rows used again. For longer runs: CHURN_SEEDS=1-200 CHURN_COUNT=2000.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.scheduler.churn import Troublemaker, churn
from tests.scheduler.test_churn import seeds

from mooring.apiserver import EmbeddedApiServer
from mooring.plugins.catalogue import catalogue
from mooring.recording import Recorder, Recording, RecordingWriter
from mooring.replay import replay

LIMIT, SEGMENTS = 1024 * 1024, 128
"""A segment for every eight kilobytes, and none is dropped."""


@pytest.mark.parametrize("seed", seeds())
async def test_whatever_happens_it_is_decided_alike_again(
    server: EmbeddedApiServer, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
):
    path, recorder = tmp_path / "a.recording", Recorder(most_items=1_000_000)
    monkeypatch.setattr("mooring.recording.writer.SEGMENTS", SEGMENTS)
    # Several segments: a later one begins with the order of pods on a node, too, which breaks ties of victims.
    with RecordingWriter(path, recorder, limit_bytes=LIMIT) as writer:
        count = int(os.environ.get("CHURN_COUNT", "400"))
        await churn(server, seed=seed, count=count, lives=1, recorder=recorder)
    assert writer.problem is None
    recording, registry = Recording.read(path), catalogue()
    registry.add(Troublemaker, "test")
    # On a thread: the replay has an event loop of its own.
    result = await asyncio.to_thread(replay, recording, None, registry)
    assert result.differing == []
    assert max(header.segment for header in recording.headers.values()) > 1
    assert result.same == len(recording.decisions) - sum(result.skipped.values()) > 50
