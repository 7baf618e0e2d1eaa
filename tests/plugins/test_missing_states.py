"""The error of a filter whose pre_filter is switched off: kube-scheduler's message, which differs by plugin."""

from __future__ import annotations

import pytest

from mooring.plugins.catalogue import catalogue

WORDS = {
    "NodePorts": 'reading "{}" from cycleState: not found',
    "PodTopologySpread": 'reading "{}" from cycleState: not found',
    "NodeResourcesFit": 'error reading "{}" from cycleState: not found',
    "InterPodAffinity": 'error reading "{}" from cycleState: not found',
    "VolumeRestrictions": 'cannot read "{}" from cycleState',
    "VolumeBinding": "not found",
    "VolumeZone": "not found",
    "DynamicResources": "not found",
    "NodeDeclaredFeatures": 'error reading "{}" from cycle-state: not found',
}


@pytest.mark.parametrize(("name", "words"), WORDS.items())
def test_the_words_are_kube_schedulers(name, words):
    entry = catalogue().get(name)
    assert entry is not None
    assert entry.cls.missing_state_message == words
