"""What plugins know of a pod beside a decision."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.engine import Profile, explanations
from mooring.framework import Plugin, Pod, Point, Refusal
from mooring.testing import a_pod


class Quota(Plugin):
    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return None

    def explain(self, pod: Pod) -> Iterable[str]:
        if pod.labels:
            yield f"quota {pod.labels['team']}: 12 of 10 cpu in use"


class Broken(Plugin):
    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return None

    def explain(self, pod: Pod) -> Iterable[str]:
        raise LookupError("no such team")


class Silent(Plugin):
    def pre_enqueue(self, pod: Pod) -> Refusal | None:
        return None


def known_by(plugin: Plugin, pod: Pod) -> list[dict[str, object]]:
    return explanations(Profile("default-scheduler", {Point.PRE_ENQUEUE: [(plugin, 1)]}), pod)


def test_the_sentences_of_a_plugin_are_given_with_its_name():
    assert known_by(Quota(), a_pod(labels={"team": "red"})) == [
        {"plugin": "Quota", "sentences": ["quota red: 12 of 10 cpu in use"]}
    ]


def test_a_plugin_without_sentences_is_left_out():
    assert known_by(Quota(), a_pod()) == []
    assert known_by(Silent(), a_pod()) == []


def test_a_fault_of_explain_is_a_sentence():
    assert known_by(Broken(), a_pod()) == [
        {"plugin": "Broken", "sentences": ["its explain failed: LookupError: no such team"]}
    ]
