"""Recorded decisions on the page: scrolled back through, explained, and replayed with another configuration."""

from __future__ import annotations

import msgspec
import pytest
from tests.recording.recorded import read_recorded
from tests.simulator.scenarios import a_cluster_of, arriving
from tests.web.pages import mirrored, served

from mooring.testing import a_pod
from mooring.web import recordings
from mooring.web.access import OperatorAccess, Rights

PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""
DEFAULTS = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def mirror():
    with mirrored() as mirror:
        yield mirror


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.recording"
    arrivals = [arriving(at, f"pod-{at}", cpu="100m") for at in range(4)]
    read_recorded(path, a_cluster_of("a", "b"), *arrivals, arriving(9, "big", cpu="64", namespace="lab"))
    return path


@pytest.fixture
async def page(mirror, file):
    async with served(mirror, recording=str(file)) as page:
        yield page


async def test_the_cluster_names_the_times_of_its_recording(page):
    recording = (await page.get("cluster"))["recording"]
    assert recording["decisions"] == 5
    assert recording["from"] < recording["to"]


async def test_decisions_are_listed_by_windows(page):
    found = await page.get("recording")
    assert (found["total"], found["from"], found["to"]) == (5, 0, 5)
    assert [(each["index"], each["pod"], each["kind"]) for each in found["items"]] == [
        *((at, f"default/pod-{at}", "bound") for at in range(4)),
        (4, "lab/big", "refused"),
    ]
    found = await page.get("recording?at=1&window=2")
    assert [each["index"] for each in found["items"]] == [0, 1]


async def test_a_decision_has_its_evidence(page):
    found = await page.get("recording/4")
    assert found["evidence"]["rejections"][0]["plugin"] == "NodeResourcesFit"
    assert found["message"].startswith("0/2 nodes are available")
    assert (await page.get("recording/0"))["evidence"]["node"] == (await page.get("recording/0"))["node"]


async def test_the_cluster_is_shown_as_it_was(page):
    assert sum((await page.get("nodes?at=0"))["pods"]) == 0
    assert sum((await page.get("nodes?at=3"))["pods"]) == 3
    assert (await page.get("cluster?at=3"))["source"] == "recording"
    assert (await page.get("queue?at=4"))["groups"][0]["reason"] == "both nodes have too little cpu"
    assert (await page.get("pods/lab/big?at=4"))["funnel"][0]["before"] == 2
    assert (await page.get("nodes"))["names"] == ["node-1", "node-2"]


async def test_old_clusters_are_dropped(page):
    for at in (0, 1, 2, 3, 4, 0):
        await page.get(f"cluster?at={at}")
    assert len(page.api.recordings._views) == recordings.KEPT_CLUSTERS


async def test_another_configuration_is_replayed(page):
    found = await page.post("recording/replay", {"config": PACKING})
    assert found["same"] + found["differs"] == found["decisions"] == 5
    assert {each["plugin"] for each in found["differing"]} == {"NodeResourcesFit"}
    assert (await page.post("recording/replay", {"config": DEFAULTS}))["differs"] == 0


async def test_a_replay_that_takes_too_long_is_partial(page, monkeypatch):
    monkeypatch.setattr(recordings, "REPLAY_SECONDS", -1.0)
    found = await page.post("recording/replay", {"config": PACKING})
    assert found["isPartial"]
    assert found["decisions"] < 5


MISTAKES = {
    "a decision that does not exist": ("recording/5", 400),
    "a place that is no number": ("nodes?at=last", 400),
    "a place below zero": ("cluster?at=-1", 400),
    "a window that is too large": ("recording?window=100000", 400),
}


@pytest.mark.parametrize(("path", "status"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_mistake_is_named(page, path, status):
    assert (await page.get(path, status))["error"]["message"]


async def test_a_configuration_that_is_wrong_is_refused(page):
    assert (await page.post("recording/replay", {"config": "kind: Pod"}, 400))["error"]["message"]
    assert (await page.post("recording/replay", {}, 400))["error"]["field"] == "config"


async def test_without_a_recording_there_is_none(mirror, tmp_path):
    async with served(mirror) as page:
        assert (await page.get("cluster"))["recording"] is None
        await page.get("recording", 404)
        await page.get("nodes?at=0", 404)
    async with served(mirror, recording=str(tmp_path / "later.recording")) as page:
        assert (await page.get("cluster"))["recording"] is None
        assert "not there yet" in (await page.get("recording", 404))["error"]["message"]


async def test_a_file_that_is_no_recording_is_refused(mirror, tmp_path):
    (tmp_path / "wrong").write_text("no recording\n", encoding="utf-8")
    async with served(mirror, recording=str(tmp_path / "wrong")) as page:
        await page.get("recording", 400)
        assert (await page.get("cluster"))["recording"] is None


async def test_a_truncated_recording_is_read_with_a_note(mirror, file):
    file.write_bytes(file.read_bytes()[:-40])
    async with served(mirror, recording=str(file)) as page:
        assert "ends without its closing row" in (await page.get("recording"))["notes"][0]


async def test_a_user_sees_decisions_of_their_namespaces(page, monkeypatch):
    async def rights(self, request, token):
        return Rights("alice", all_namespaces=False, namespaces=frozenset({"default"}))

    monkeypatch.setattr(OperatorAccess, "rights", rights)
    assert {each["pod"].partition("/")[0] for each in (await page.get("recording"))["items"]} == {"default"}
    await page.get("recording/4", 403)
    await page.get("pods/lab/big?at=4", 403)


async def test_a_victim_without_a_decision_of_its_own_is_not_named(mirror, tmp_path, monkeypatch):
    async def rights(self, request, token):
        return Rights("alice", all_namespaces=False, namespaces=frozenset({"default"}))

    path = tmp_path / "b.recording"
    running = a_pod("running", namespace="lab", cpu="1", node="a", priority=1)
    cluster = msgspec.structs.replace(a_cluster_of("a"), pods=[running])
    read_recorded(path, cluster, arriving(1, "urgent", cpu="1", priority=10))
    async with served(mirror, recording=str(path)) as page:
        assert "lab/running" in str(await page.get("recording/0"))
        monkeypatch.setattr(OperatorAccess, "rights", rights)
        assert "lab/running" not in str(await page.get("recording/0"))
        assert "lab/running" not in str(await page.get("recording"))
