"""What a running scheduler cannot change is named, with what to do; everything else is no reason to refuse."""

from __future__ import annotations

import pytest
from tests.scheduler.conftest import a_profile
from tests.scheduler.reload.changes import a_registry

from mooring.config import Configuration, load_configuration
from mooring.framework import Plugin
from mooring.framework.queued_pod import QueuedPod
from mooring.framework.registry import Registry
from mooring.scheduler.reload.restart_required import needs_restart

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
SORTED = (
    "profiles: [{schedulerName: default-scheduler, plugins: "
    "{queueSort: {enabled: [{name: NewestFirst}], disabled: [{name: '*'}]}}}]"
)


class NewestFirst(Plugin):
    def sort_key(self, queued: QueuedPod) -> float:
        return -queued.timestamp


def rewritten() -> type[Plugin]:
    """The same plugin from a file that was run again."""

    class NewestFirst(Plugin):
        def sort_key(self, queued: QueuedPod) -> float:
            return -queued.timestamp

    return NewestFirst


def a_version(text: str, sorter: type[Plugin] = NewestFirst) -> tuple[Configuration, Registry]:
    registry = a_registry([sorter])
    return load_configuration(HEAD + text, source="x.yaml", registry=registry).configuration, registry


REFUSED = {
    "who leads": ("leaderElection: {leaderElect: false}", {"leaderElection.leaderElect": "true → false"}),
    "how long a lease holds": ("leaderElection: {leaseDuration: 20s}", {"leaderElection.leaseDuration": "15.0 → 20.0"}),
    "which server is scheduled": (
        "clientConnection: {kubeconfig: other, qps: 7}",
        {"clientConnection.kubeconfig": '"" → "other"', "clientConnection.qps": "null → 7.0"},
    ),
    "what is called beside plugins": (
        'extenders: [{urlPrefix: "http://x", filterVerb: f}]',
        {"extenders": "restart it"},
    ),
    "what is served": ("enableProfiling: false", {"enableProfiling": "true → false"}),
    "how the queue is ordered": (SORTED, {"profiles[0].plugins.queueSort": "PrioritySort → NewestFirst"}),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_a_restart_is_needed_to_change(text, expected):
    problems = {problem.path: problem.message for problem in needs_restart(a_version(""), a_version(text))}
    for path, words in expected.items():
        assert words in problems[path]
        assert "restart it, or put the old value back" in problems[path]


ALLOWED = {
    "plugins": a_profile("default-scheduler", plugins=["ScoreByLabel"]),
    "names": a_profile("another"),
    "backoffs": "podInitialBackoffSeconds: 2",
    "percentageOfNodesToScore": "percentageOfNodesToScore: 50",
    "what was so by default": "leaderElection: {leaderElect: true}",
}


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED.keys())
def test_no_restart_is_needed_to_change(text):
    text = f"profiles:\n{text}" if text.startswith("-") else text
    assert needs_restart(a_version(""), a_version(text)) == []


def test_a_plugin_that_orders_the_queue_cannot_be_loaded_again():
    [problem] = needs_restart(a_version(SORTED), a_version(SORTED, rewritten()))
    assert problem.path == "profiles[0].plugins.queueSort"
    assert "the code of NewestFirst has changed" in problem.message
