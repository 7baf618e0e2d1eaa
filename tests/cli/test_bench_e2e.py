"""`mooring bench e2e`: wrong input is refused before anything starts; with the real programs it measures."""

from __future__ import annotations

from tests.cli.conftest import Mooring


def test_a_workload_that_is_not_there_is_named(mooring: Mooring):
    result = mooring("bench", "e2e", "--workload=spraed", "--workload=refused")
    assert result.code == 2
    assert 'there is no workload "spraed". Did you mean "spread"?' in result.err
    assert '"refused" cannot be measured end to end: none of its pods is bound' in result.err


def test_a_scheduler_that_is_not_there_is_named(mooring: Mooring):
    result = mooring("bench", "e2e", "--scheduler=moring")
    assert result.code == 2
    assert 'Did you mean "mooring"?' in result.err


def test_missing_programs_are_named_with_what_gets_them(mooring: Mooring, monkeypatch, tmp_path):
    monkeypatch.setenv("MOORING_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    result = mooring("bench", "e2e", "--scheduler=mooring")
    assert result.code == 2
    assert "scripts/install-debian etcd" in result.err
    assert "scripts/build-real kube-apiserver" in result.err
