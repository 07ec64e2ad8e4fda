"""`python -m runtime.cli`, where the `charter` command is not installed."""

from runtime.cli import main

main()
