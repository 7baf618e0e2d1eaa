"""`python -m mooring` is the `mooring` command."""

from mooring.cli.main import main

main()
