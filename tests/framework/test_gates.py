"""`--feature-gates`: what is taken, what is refused, and that no gate does nothing in silence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mooring
from mooring.base.errors import OperatorMistake
from mooring.framework.gate_table import GATES
from mooring.framework.gates import (
    BUILT_BOTH_WAYS,
    BUILT_ONE_WAY,
    INSIDE_KUBE_SCHEDULER,
    OF_POD_GROUPS,
    FeatureGates,
    read_gates,
)

COMPARISON, FEATURES = "TaintTolerationComparisonOperators", "NodeDeclaredFeatures"


def problems(*texts: str) -> dict[str, str]:
    with pytest.raises(OperatorMistake) as raised:
        read_gates(texts)
    return {problem.path.removeprefix("--feature-gates "): problem.message for problem in raised.value.problems}


def test_without_the_flag_the_defaults_hold():
    read = read_gates([])
    assert read.warnings == ()
    assert (read.gates.on(FEATURES), read.gates.on(COMPARISON)) == (True, False)


TAKEN = {
    "one gate": [f"{COMPARISON}=true"],
    "among others": [f"{FEATURES}=false,{COMPARISON}=true"],
    "with its component": [f"kube:{COMPARISON}=true"],
    "in several flags": [f"{FEATURES}=true", f"{COMPARISON}=1"],
    "with spaces": [f" {COMPARISON} = True , {FEATURES}=false"],
    "the last word counts": [f"{COMPARISON}=false,{COMPARISON}=T"],
}


@pytest.mark.parametrize("texts", TAKEN.values(), ids=TAKEN.keys())
def test_it_is_read_as_kube_scheduler_reads_it(texts):
    assert read_gates(texts).gates.on(COMPARISON)


REFUSED = {
    "an unknown gate": (
        "NodeDeclardFeatures=true",
        'unrecognized feature gate: NodeDeclardFeatures. Did you mean "NodeDeclaredFeatures"?',
    ),
    "another component": ("etcd:Nope=true", 'there is no component "etcd" here, only kube'),
    "no value": (FEATURES, f"missing bool value for {FEATURES}: write {FEATURES}=true or {FEATURES}=false"),
    "a value that is neither": (f"{FEATURES}=maybe", 'must be true or false, got "maybe"'),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_read_is_refused(text, message):
    assert problems(text) == {text: message}


def test_a_locked_gate_cannot_be_changed():
    assert problems("SchedulerQueueingHints=false") == {
        "SchedulerQueueingHints": "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true"
    }


def test_what_is_not_built_cannot_be_switched_on_or_off():
    assert problems("NativeHistograms=true,PodLevelResources=false") == {
        "NativeHistograms": "switching it on is not built: Mooring schedules with it off only",
        "PodLevelResources": "switching it off is not built: Mooring schedules with it on only",
    }
    read_gates(["NativeHistograms=false,PodLevelResources=true"])


def test_every_mistake_is_reported():
    assert len(problems("Nope=true,SchedulerQueueingHints=false", "NativeHistograms=true")) == 3


def test_all_of_a_stage_is_as_if_each_were_named():
    assert "AllAlpha (NativeHistograms)" in problems("AllAlpha=true")
    assert "AllBeta (PodLevelResources)" in problems("AllBeta=false")
    assert not read_gates(["AllAlpha=false"]).warnings


def test_a_gate_that_is_named_is_not_one_of_all():
    unbuilt = [f"{name}=false" for name in BUILT_ONE_WAY if GATES[name].stage == "ALPHA"]
    gates = read_gates(["AllAlpha=true", ",".join(unbuilt)]).gates
    assert gates.on(COMPARISON)
    assert not gates.on("NativeHistograms")


WITHOUT_WHAT_THEY_NEED = {
    "DRAWorkloadResourceClaims=true": (
        "DRAWorkloadResourceClaims is enabled, but depends on features that are disabled: [GenericWorkload]"
    ),
    "GangScheduling=true": "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
    "TopologyAwareWorkloadScheduling=true": (
        "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"
    ),
    "GenericWorkload=true,WorkloadAwarePreemption=true": (
        "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]"
    ),
    "WorkloadWithJob=true": "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]",
}


@pytest.mark.parametrize(("text", "message"), WITHOUT_WHAT_THEY_NEED.items(), ids=WITHOUT_WHAT_THEY_NEED.keys())
def test_a_gate_of_pod_groups_is_refused_without_the_gates_that_it_needs(text, message):
    """Gang scheduling, section 1."""
    assert list(problems(text).values()) == [message]


def test_the_gates_of_pod_groups_can_be_on_together_without_a_warning():
    """Gang scheduling, section 1."""
    read = read_gates([",".join(f"{name}=true" for name in OF_POD_GROUPS)])
    assert read.warnings == ()
    assert all(read.gates.on(name) for name in OF_POD_GROUPS)
    assert not any(FeatureGates().on(name) for name in OF_POD_GROUPS)


WARNED = {
    "a kubelet's gate": ("MemoryQoS=true", "changes nothing in a scheduler"),
    "a gate about kube-scheduler's inside": ("OpportunisticBatching=false", "changes nothing here"),
    "API calls beside the loop": ("SchedulerAsyncAPICalls=true", "changes nothing here"),
    "a gate that is done": ("SidecarContainers=true", "GA feature gate"),
}


@pytest.mark.parametrize(("text", "words"), WARNED.values(), ids=WARNED.keys())
def test_what_changes_nothing_is_taken_with_a_warning(text, words):
    [warning] = read_gates([text]).warnings
    assert words in warning.message


def test_the_lists_are_of_gates_that_can_be_changed_and_do_not_overlap():
    listed = [*BUILT_BOTH_WAYS, *OF_POD_GROUPS, *BUILT_ONE_WAY, *INSIDE_KUBE_SCHEDULER]
    assert len(set(listed)) == len(listed)
    assert not [name for name in listed if GATES[name].locked]


def test_what_counts_as_built_both_ways_is_what_plugins_read():
    plugins = Path(mooring.__file__).parent / "plugins"
    read = {
        name
        for file in plugins.rglob("*.py")
        for name in re.findall(r'gates\.on\(\s*"(\w+)"', file.read_text(encoding="utf-8"))
    }
    assert {name for name in read if not GATES[name].locked} - OF_POD_GROUPS == BUILT_BOTH_WAYS


def test_the_page_about_gates_names_each_in_its_place():
    page = (Path(__file__).parents[2] / "docs" / "feature-gates.md").read_text(encoding="utf-8")
    _, switched, not_on, not_off = page.split("\n## ")
    assert dict(re.findall(r"\| `(\w+)` \| (on|off)", switched)) == {
        name: "on" if GATES[name].default else "off" for name in BUILT_BOTH_WAYS | OF_POD_GROUPS
    }
    assert set(re.findall(r"`(\w+)`", not_on)) == {name for name in BUILT_ONE_WAY if not GATES[name].default}
    assert set(re.findall(r"`(\w+)`", not_off)) == {name for name in BUILT_ONE_WAY if GATES[name].default}


def test_a_plugin_that_reads_an_unknown_gate_fails():
    with pytest.raises(KeyError):
        FeatureGates().on("Nope")


def test_changed_gates_are_listed():
    (gate, *_) = BUILT_BOTH_WAYS
    default = GATES[gate].default
    assert FeatureGates({gate: not default}).changed() == {gate: not default}
    assert FeatureGates({gate: default}).changed() == FeatureGates().changed() == {}
