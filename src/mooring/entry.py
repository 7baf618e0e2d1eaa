"""Where every `mooring` process begins. SIGHUP comes first: what follows takes a moment to import."""

from __future__ import annotations

import sys

from mooring.cli import hangup


def main() -> None:
    program = sys.argv[0].rpartition("/")[2]
    hangup.hold_for(program, sys.argv[1:])
    from mooring.cli.main import main as run_command

    run_command()
