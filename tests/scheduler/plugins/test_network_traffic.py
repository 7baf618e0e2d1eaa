"""NetworkTraffic in a live scheduler: a stand-in for Prometheus responds well, badly, late or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.scheduler.conftest import PATIENCE_SECONDS, a_configuration, a_live_scheduler

from mooring.plugins.examples import network_traffic


@pytest.fixture(autouse=True)
def responses_stay_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prometheus is queried every few milliseconds here; a busy machine must not turn its last response stale."""
    monkeypatch.setattr(network_traffic, "FRESH_REFRESHES", 100_000)


class StandIn:
    """Responds to the query as Prometheus would, until the test sets another response."""

    def __init__(self) -> None:
        self.received = {"busy": 9_000_000, "quiet": 1_000_000}
        self.token: str | None = None
        self.page: str | None = None
        self.hangs = False
        self.address = ""
        self.requested = 0
        self.over = asyncio.Event()
        self._news = asyncio.Event()

    async def response(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == "/api/v1/query"
        assert "sum_over_time(node_network_receive_bytes_total{" in request.query["query"]
        self.requested += 1
        self._news.set()
        if self.hangs:
            await self.over.wait()
        if self.page is not None:
            return web.Response(text=self.page, content_type="text/html")
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, text="Unauthorized")
        result = [{"metric": {"kubernetes_node": node}, "value": [0, str(n)]} for node, n in self.received.items()]
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    async def queried(self, more: int) -> None:
        """Wait for so many further queries: when the second comes, the first one's response was taken in."""
        await self.received_in_all(self.requested + more)

    async def received_in_all(self, wanted: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.requested < wanted:
                self._news.clear()
                await self._news.wait()

    def configuration(self, **further: object) -> str:
        args = {"prometheusAddress": self.address, "refreshSeconds": 0.01} | further
        shown = ", ".join(
            f'{name}: "{value}"' if isinstance(value, str) else f"{name}: {value}" for name, value in args.items()
        )
        return a_configuration(f"""
- schedulerName: default-scheduler
  plugins: {{score: {{enabled: [{{name: NetworkTraffic}}], disabled: [{{name: "*"}}]}}}}
  pluginConfig: [{{name: NetworkTraffic, args: {{{shown}}}}}]
""")


@pytest.fixture
async def prometheus() -> AsyncIterator[StandIn]:
    stand_in = StandIn()
    runner = web.ServerRunner(web.Server(stand_in.response))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stand_in.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield stand_in
    stand_in.over.set()
    await runner.cleanup()


async def test_the_pod_goes_where_least_is_received(server, prometheus, capsys):
    async with a_live_scheduler(server, prometheus.configuration()) as live:
        await live.node("busy")
        await live.node("quiet")
        await prometheus.queried(2)
        await live.pod("web")
        assert await live.bound("web") == ["quiet"]
        decision = live.scheduler.decision_log.read("default/web")
        assert decision is not None
        assert decision["used"]["NetworkTraffic"] >= 1

        prometheus.received = {"busy": 0, "quiet": 5}
        await prometheus.queried(2)
        await live.pod("next")
        assert await live.bound("next") == ["busy"]
    logged = capsys.readouterr().err
    assert "[NetworkTraffic] node 'busy' bandwidth: 9000000" in logged
    assert "[NetworkTraffic] node 'quiet' bandwidth: 1000000" in logged


async def test_a_node_that_prometheus_has_lost_does_not_win_by_silence(server, prometheus):
    prometheus.received = {"busy": 9_000_000, "quiet": 1_000_000, "other": 8_000_000}
    async with a_live_scheduler(server, prometheus.configuration()) as live:
        for name in ("busy", "quiet", "lost"):
            await live.node(name)
        await prometheus.queried(2)
        await live.pod("web")
        assert await live.bound("web") == ["quiet"]


async def until_logged(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What was logged until these words came: nothing else shows that a background task has failed."""
    logged = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while words not in logged:
            await asyncio.sleep(0)
            logged += capsys.readouterr().err
    return logged


async def test_the_token_is_read_again_when_it_has_changed(server, prometheus, tmp_path: Path, capsys):
    token = tmp_path / "token"
    token.write_text("old\n", encoding="utf-8")
    prometheus.token = "new"
    async with a_live_scheduler(server, prometheus.configuration(bearerTokenFile=str(token))) as live:
        await until_logged(f"{prometheus.address} responded 401", capsys)
        token.write_text("new\n", encoding="utf-8")
        await prometheus.queried(3)
        await live.node("busy")
        await live.node("quiet")
        await live.pod("web")
        assert await live.bound("web") == ["quiet"]


async def test_pods_are_scheduled_while_prometheus_returns_html_and_that_is_logged_once(server, prometheus, capsys):
    prometheus.page = "<html><body>Please sign in</body></html>"
    async with a_live_scheduler(server, prometheus.configuration()) as live:
        await prometheus.queried(5)
        await live.node("busy")
        await live.pod("web")
        assert await live.bound("web") == ["busy"]
    assert (
        capsys.readouterr().err.count(f"{prometheus.address} returned HTML, which is not a Prometheus query result")
        == 1
    )


async def test_pods_are_scheduled_while_prometheus_never_responds(server, prometheus):
    prometheus.hangs = True
    async with a_live_scheduler(server, prometheus.configuration(refreshSeconds=30)) as live:
        await live.node("busy")
        await live.pod("web")
        assert await live.bound("web") == ["busy"]
        await prometheus.received_in_all(1)


async def test_prometheus_is_queried_again_when_it_did_not_respond_in_time(server, prometheus, capsys):
    prometheus.hangs = True
    async with a_live_scheduler(server, prometheus.configuration()):
        await until_logged(f"{prometheus.address} did not respond within 1 s", capsys)
        await prometheus.received_in_all(2)


async def test_pods_are_scheduled_while_the_ca_file_cannot_be_read(server, prometheus, tmp_path: Path, capsys):
    async with a_live_scheduler(server, prometheus.configuration(caFile=str(tmp_path / "none.pem"))) as live:
        await live.node("busy")
        await live.pod("web")
        assert await live.bound("web") == ["busy"]
        logged = await until_logged("none.pem cannot be used", capsys)
    assert (logged + capsys.readouterr().err).count("none.pem cannot be used") == 1
    assert prometheus.requested == 0


async def test_pods_are_scheduled_while_no_server_is_at_the_address(server, prometheus, capsys):
    prometheus.address = "http://127.0.0.1:1"
    async with a_live_scheduler(server, prometheus.configuration()) as live:
        await live.node("busy")
        await live.pod("web")
        assert await live.bound("web") == ["busy"]
        logged = await until_logged("http://127.0.0.1:1 cannot be reached", capsys)
    assert (logged + capsys.readouterr().err).count("http://127.0.0.1:1 cannot be reached") == 1
