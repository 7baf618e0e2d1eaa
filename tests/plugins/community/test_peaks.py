"""Peaks: the node whose power grows least."""

from __future__ import annotations

import json

import pytest
from tests.plugins.community.trimaran_loads import a_load_plugin, cpu, services_with

from mooring.base.errors import OperatorMistake
from mooring.plugins.community.trimaran import Peaks
from mooring.plugins.community.trimaran.peaks import MODEL_FILE, PeaksArgs
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod

MODEL = {"k0": 100.0, "k1": 1.0, "k2": 0.05}
MODELS = dict.fromkeys(("idle", "busy", "full", "silent"), MODEL)


def normalized(loads, models=MODELS, **arguments):
    services = services_with(loads)
    plugin = a_load_plugin(Peaks, services, node_power_model=models, **arguments)
    nodes = [a_node(name, cpu="4") for name in models]
    columns = a_cluster(*nodes, plugins=[plugin], services=services).schedule(a_pod(cpu="400m")).columns()
    assert columns is not None
    return dict(zip(columns.nodes, columns.normalized["Peaks"].tolist(), strict=True))


LOADS = {"idle": cpu(0), "busy": cpu(80), "full": cpu(95)}


def test_the_least_growth_of_power_is_best_and_overloaded_nodes_have_0():
    assert normalized(LOADS) == {"idle": 100, "busy": 0, "full": 0, "silent": 0}


def test_an_overloaded_or_silent_node_does_not_change_how_others_compare():
    models = dict.fromkeys(("idle", "middle", "busy"), MODEL)
    loads = {"idle": cpu(0), "middle": cpu(60), "busy": cpu(80)}
    assert normalized(loads, models) == {
        name: number
        for name, number in normalized({**loads, "full": cpu(95)}, {**models, "full": MODEL}).items()
        if name != "full"
    }


def test_in_scheduler_plugins_overloaded_and_silent_nodes_are_the_cheapest():
    scores = normalized(LOADS, compatibility="scheduler-plugins")
    assert (scores["full"], scores["silent"]) == (100, 100)


def test_without_loads_all_nodes_are_alike():
    assert set(normalized(None).values()) == {0}


def test_the_names_of_scheduler_plugins_are_read():
    from mooring.config import load_configuration
    from mooring.plugins.catalogue import catalogue

    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {score: {enabled: [{name: Peaks}]}}
    pluginConfig:
      - name: Peaks
        args:
          WatcherAddress: http://load-watcher.example
          NodePowerModel: {node-1: {k0: 1.0, k1: 2.0, k2: 0.1}}
"""
    loaded = load_configuration(text, source="peaks.yaml", registry=catalogue())
    args = loaded.configuration.profiles[0].args["Peaks"]
    assert isinstance(args, PeaksArgs)
    assert (args.source.watcher_address, args.models()["node-1"].k1) == ("http://load-watcher.example", 2.0)


def test_models_may_come_from_a_file(tmp_path, monkeypatch):
    (tmp_path / "models.json").write_text(json.dumps({"idle": MODEL}))
    monkeypatch.setenv(MODEL_FILE, str(tmp_path / "models.json"))
    a_plugin(Peaks, Services())


def test_without_models_it_is_refused(monkeypatch):
    monkeypatch.delenv(MODEL_FILE, raising=False)
    with pytest.raises(OperatorMistake, match="no such file or directory"):
        a_plugin(Peaks, Services())


def test_a_model_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    (tmp_path / "models.json").write_text("{")
    monkeypatch.setenv(MODEL_FILE, str(tmp_path / "models.json"))
    with pytest.raises(OperatorMistake, match=r"models\.json"):
        a_plugin(Peaks, Services())
