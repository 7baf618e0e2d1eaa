"""The kubeconfig of an embedded cluster."""

from __future__ import annotations

import stat
from pathlib import Path

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.server import kubeconfig
from mooring.base.documents import read_tree, written


def test_it_reads_back_the_same_whatever_the_token_looks_like():
    config = kubeconfig("https://127.0.0.1:6443", token="12e34", ca_pem="a certificate")
    assert read_tree(written(config).encode(), "config").plain() == config


def test_it_is_for_its_owners_eyes_only(tmp_path: Path):
    EmbeddedApiServer().write_kubeconfig(tmp_path / "config")
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["config"]
