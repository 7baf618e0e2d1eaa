"""The kubeconfig of an embedded cluster."""

from __future__ import annotations

import stat
from pathlib import Path

from mooring.apiserver.kubeconfig import kubeconfig, write_whole
from mooring.base.documents import read_tree


def test_it_reads_back_the_same_whatever_the_token_looks_like(tmp_path: Path):
    config = kubeconfig("https://127.0.0.1:6443", token="12e34", ca_pem="a certificate")
    write_whole(tmp_path / "config", config)
    assert read_tree((tmp_path / "config").read_bytes(), "config").plain() == config


def test_it_is_for_its_owners_eyes_only(tmp_path: Path):
    write_whole(tmp_path / "config", {"kind": "Config"})
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
