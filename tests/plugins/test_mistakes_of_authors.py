"""What an author gets wrong is an error that names it, wherever it was silent or late."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.builders import a_profile, a_state

from mooring.base.errors import OperatorMistake
from mooring.config import load_configuration
from mooring.engine import DecisionCache, decide, permit
from mooring.framework import Args, NodeView, Objects, Plugin, Pod, PodsWhere, Reads, Wait
from mooring.framework.contract import check_contract
from mooring.objects import Node
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.plugin_runtime.assembly import Instance
from mooring.scheduler.plugin_runtime.lifecycle import Lifecycle
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod

HERE = Path(__file__).name


class BadSign(Plugin):
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Any:
        return {"a": []}

    def filter(self, pod: Pod, node: NodeView, cycle: Any) -> None: ...


def test_a_sign_that_cannot_be_a_key_is_logged_once(capsys):
    profile, state, cache = a_profile(BadSign()), a_state("a"), DecisionCache()
    for _ in range(3):
        assert decide(profile, a_pod(), state, cache=cache).node == "a"
    [line] = [each for each in capsys.readouterr().err.splitlines() if "sign failed" in each]
    assert 'plugin="BadSign"' in line
    assert "unhashable" in line


def test_verify_raises_what_sign_raises():
    cluster = a_cluster(a_node("a"), plugins=[a_plugin(BadSign)])
    with pytest.raises(TypeError, match="unhashable"):
        cluster.verify(a_pod())


class Impatient(Plugin):
    def permit(self, pod: Pod, node: NodeView, cycle: Any) -> Wait:
        return Wait(-5)


def test_a_wait_of_less_than_nothing_is_a_fault():
    profile = a_profile(Impatient())
    decision = decide(profile, a_pod(), a_state("a"))
    assert "Wait(seconds=-5, reason='') is no time to wait" in str(permit(profile, decision))


class WrongDefaultArgs(Args):
    n: int = "x"  # type: ignore[assignment]


class WrongDefault(Plugin):
    def __init__(self, args: WrongDefaultArgs) -> None: ...


def test_a_default_that_does_not_fit_its_type_is_refused_when_the_plugin_is_loaded():
    with pytest.raises(OperatorMistake) as refused:
        check_contract(WrongDefault, "mine.py")
    [problem] = refused.value.problems
    assert problem.path == "WrongDefaultArgs.n"
    assert problem.message.startswith("its default does not fit its type: Expected `int`")


class TextsArgs(Args):
    def mistakes(self) -> Iterable[tuple[str, str]]:
        yield "n must be odd"  # type: ignore[misc]


class Texts(Plugin):
    def __init__(self, args: TextsArgs) -> None: ...


def test_mistakes_that_are_no_pairs_are_named_with_their_form():
    registry = catalogue()
    registry.add(Texts, "test")
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Texts}]}}, pluginConfig: [{name: Texts, args: {}}]}]\n"
    )
    with pytest.raises(OperatorMistake) as refused:
        load_configuration(text, source="test", registry=registry)
    assert any(
        "it must yield (field path, message), not 'n must be odd'" in str(each) for each in refused.value.problems
    )


class BadStart(Plugin):
    async def start(self) -> None:
        raise ValueError("st")


async def test_a_start_that_raises_is_logged_with_its_line(capsys):
    await Lifecycle().start(Instance(BadStart(), (), background=None))  # type: ignore[arg-type]
    [line] = [each for each in capsys.readouterr().err.splitlines() if "failed to start" in each]
    assert "ValueError: st" in line
    assert f"{HERE}:" in line


def test_the_error_of_an_iteration_names_how_objects_and_tallies_are_read():
    services = Services()
    objects: Any = services.provide(Objects[Node])
    with pytest.raises(TypeError, match=r"\.all\(\)"):
        iter(objects)
    tally: Any = a_cluster(a_node("a"), plugins=[]).state.tally(PodsWhere(), "zone")
    with pytest.raises(TypeError, match=r"\.at\(node\)"):
        iter(tally)
