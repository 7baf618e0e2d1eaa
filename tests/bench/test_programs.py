"""Programs are found in the cache; those that are missing are reported at once, with what gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.bench.programs import BIND_RATE, ETCD, KUBE_APISERVER, KUBE_SCHEDULER, cached_path, require_programs


def a_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", [ETCD, KUBE_APISERVER, KUBE_SCHEDULER, BIND_RATE])
def test_a_program_comes_from_the_cache(tmp_path: Path, name: str):
    environ = {"MOORING_CACHE": str(tmp_path), "PATH": ""}
    program = a_program(cached_path(name, environ))
    assert require_programs([name], environ) == {name: program}


def test_etcd_may_be_on_the_path(tmp_path: Path):
    program = a_program(tmp_path / "bin" / ETCD)
    assert require_programs([ETCD], {"MOORING_CACHE": str(tmp_path), "PATH": str(program.parent)}) == {ETCD: program}


def test_all_missing_programs_are_reported_with_what_gets_them(tmp_path: Path):
    with pytest.raises(OperatorMistake) as mistake:
        require_programs([ETCD, KUBE_APISERVER], {"MOORING_CACHE": str(tmp_path), "PATH": ""})
    assert "2 of them are missing" in mistake.value.summary
    assert [problem.path for problem in mistake.value.problems] == [ETCD, KUBE_APISERVER]
    assert "scripts/install-debian etcd" in mistake.value.problems[0].message
    assert "scripts/build-real kube-apiserver" in mistake.value.problems[1].message
