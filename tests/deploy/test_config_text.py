"""Cutting `clientConnection.kubeconfig` out of a configuration changes nothing else."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring.base.errors import OperatorMistake
from mooring.deploy.config_text import without_kubeconfig

CASES = {
    "a file without it stays as it is": ("a: 1  # one\n", "a: 1  # one\n"),
    "its line goes, comments stay": (
        "clientConnection:\n  # how\n  kubeconfig: /a/b  # where\n  qps: 5\nprofiles: []\n",
        "clientConnection:\n  # how\n  qps: 5\nprofiles: []\n",
    ),
    "a section that would be empty goes too": (
        "clientConnection:\n  kubeconfig: /a/b\nprofiles: []\n",
        "profiles: []\n",
    ),
    "the last line may have no end": ("a: 1\nclientConnection:\n  kubeconfig: /a/b", "a: 1\n"),
    "a section in one line goes as a whole": ("clientConnection: {kubeconfig: /a/b}\na: 1\n", "a: 1\n"),
}


@pytest.mark.parametrize(("text", "cut"), CASES.values(), ids=CASES.keys())
def test_the_field_is_cut_out(text, cut):
    assert without_kubeconfig(text, "f.yaml") == cut


def test_a_field_among_others_in_a_line_is_refused():
    with pytest.raises(OperatorMistake, match=r"clientConnection\.kubeconfig \(line 1\)"):
        without_kubeconfig("clientConnection: {kubeconfig: /a/b, qps: 5}\na: 1\n", "f.yaml")


plain = st.one_of(st.integers(), st.booleans(), st.text("abc /:#'\"\n-", max_size=8))
sections = st.dictionaries(st.sampled_from(["qps", "burst", "contentType"]), plain, max_size=3)


@given(sections, st.text("abc/:#'\"\n -", max_size=12), st.dictionaries(st.sampled_from("abxyz"), plain, max_size=4))
def test_any_file_means_the_same_without_it(section, kubeconfig, others):
    whole = {**others, "clientConnection": {**section, "kubeconfig": kubeconfig}, "profiles": [{"schedulerName": "x"}]}
    text = yaml.safe_dump(whole, sort_keys=False)
    cut = yaml.safe_load(without_kubeconfig(text, "f.yaml"))
    expected = dict(whole)
    if section:
        expected["clientConnection"] = section
    else:
        del expected["clientConnection"]
    assert cut == expected
