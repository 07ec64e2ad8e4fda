"""`qo`: the command line of the object queue. Heavy modules are imported only when a command runs."""

from __future__ import annotations

import click

from handlers.objectqueue.cli.commands import nodes, queries, setup, submit, transitions
from runtime.node.process_exit import exit_process

COMMANDS: dict[str, click.Command] = {
    "submit": submit.submit,
    "status": queries.status,
    "wait": queries.wait,
    "list": queries.list_tasks,
    "history": queries.history,
    "stats": queries.stats,
    "replay": transitions.replay,
    "archive": transitions.archive,
    "unarchive": transitions.unarchive,
    "cancel": transitions.cancel,
    "workers": queries.workers,
    "worker": nodes.worker,
    "monitor": nodes.monitor,
    "init": setup.init,
    "doctor": setup.doctor,
    "ui": setup.ui,
    "completion": setup.completion,
}


class _OrderedGroup(click.Group):
    """A group that lists its commands in the order of their definition, not alphabetically."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)


@click.command(
    "qo", cls=_OrderedGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="charter", message="%(prog)s %(version)s")
def qo() -> None:
    """A task queue in a bucket.

    Where it is: S3_ENDPOINT, S3_BUCKET, S3_REGION and the usual AWS variables, or the flags of each command.
    Exit codes: 0 done, 1 trouble, 2 wrong usage, 3 not found, 4 conflict, 5 not ended in time.
    """


def main() -> None:
    """Run `qo`; the entry point."""
    try:
        qo.main(prog_name="qo")
    except SystemExit as ended:
        exit_process(ended.code if isinstance(ended.code, int) else 0)
