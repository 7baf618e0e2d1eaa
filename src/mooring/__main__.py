"""`python -m mooring` is the `mooring` command."""

from mooring.entry import main

main()
