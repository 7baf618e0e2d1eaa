"""A fingerprint changes with what a value means, and with nothing else."""

import functools
import subprocess
import sys

import numpy as np

from mooring.framework import Plugin
from mooring.simulator import Arrival, Cluster, Workload, profile
from mooring.simulator.sweeps.fingerprints import fingerprint
from mooring.testing import a_node_object, a_pod


def workload(cpu):
    return Workload([Arrival(0.0, a_pod("web", cpu=cpu))])


def adding(number):
    return lambda seed: seed + number


class One(Plugin):
    """A plugin."""


class Other(Plugin):
    """Another plugin."""


def test_equal_content_is_equal():
    assert fingerprint(workload("1")) == fingerprint(workload("1")) != fingerprint(workload("2"))
    one, other = (Cluster([a_node_object("n", cpu=cpu)]) for cpu in ("1", "2"))
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) is not None
    assert fingerprint(Cluster([a_node_object("n", cpu="1")])) == fingerprint(one)
    assert fingerprint(np.array([1, 2])) == fingerprint([1, 2])


def test_plugins_of_a_profile_count():
    assert fingerprint(profile(enable=[One])) == fingerprint(profile(enable=[One]))
    assert fingerprint(profile(enable=[One])) != fingerprint(profile(enable=[Other]))


def test_functions_are_compared_by_source_and_by_what_they_enclose():
    assert fingerprint(adding(1)) == fingerprint(adding(1)) != fingerprint(adding(2))
    assert fingerprint(functools.partial(adding, 1)) != fingerprint(functools.partial(adding, 2))
    assert fingerprint(adding) != fingerprint(workload)


def test_files_are_compared_by_their_bytes(tmp_path):
    file = tmp_path / "scheduler.yaml"
    file.write_text("a: 1")
    before = fingerprint(file)
    file.write_text("a: 2")
    assert fingerprint(file) != before


def test_what_has_no_content_has_no_fingerprint():
    assert fingerprint(iter([])) is None
    assert fingerprint(eval("lambda: 1")) is None


def test_another_process_computes_the_same():
    program = (
        "from mooring.simulator.sweeps.fingerprints import fingerprint as f; print(f(({'b', 'a', 'c', 'd'}, {1: 'x'})))"
    )
    found = subprocess.run([sys.executable, "-c", program], env=None, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == fingerprint(({"d", "c", "b", "a"}, {1: "x"}))
