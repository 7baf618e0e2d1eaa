"""One rule in three forms: its own tests pass, and the benchmark measures each."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from tests.examples.conftest import EXAMPLES

from mooring.cli.bench import bench

FILE = EXAMPLES / "forms" / "headroom.py"


@pytest.mark.parametrize("form", ["PlainHeadroom", "SignedHeadroom", "VectorHeadroom"])
def test_each_form_is_measured(form):
    few = ["--nodes", "5", "--pods", "5", "--running", "5", "--workload", "basic"]
    result = CliRunner().invoke(bench, ["decide", *few, "--plugins", str(FILE), "--with", form], catch_exceptions=False)
    assert result.exit_code == 0
    assert "basic" in result.output
