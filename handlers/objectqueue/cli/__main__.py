"""`python -m handlers.objectqueue.cli`: run `qo` where the package is not installed, as in a container."""

from handlers.objectqueue.cli import main

main()
