"""`python -m handlers.objectqueue.cli`: `qo` where nothing is installed, as in a container."""

from handlers.objectqueue.cli import main

main()
