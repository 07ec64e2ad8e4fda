"""`qo init`, `qo doctor`, `qo ui` and `qo completion`: the commands that set the queue up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from handlers.objectqueue.cli.location import FAILED, Location, location_options
from handlers.objectqueue.cli.output import print_json, print_message, print_table
from handlers.objectqueue.cli.parameters import SPAN

if TYPE_CHECKING:
    from handlers.objectqueue.cli.bucket import Bucket

Answer = TypeVar("Answer")
_SHELLS = click.Choice(["bash", "zsh", "fish"])


@click.command()
@click.option("--no-page", is_flag=True, help="Leave the page out.")
@location_options
def init(no_page: bool, location: Location) -> None:
    """Make the bucket ready. It may be repeated.

    It gets versions, rules for what is out of use, access for browsers, and the page.
    """
    done = _with_bucket(location, lambda bucket: bucket.set_up(with_page=not no_page))
    if location.as_json:
        print_json({"done": done})
    else:
        for each in done:
            click.echo(each)


@click.command()
@location_options
def doctor(location: Location) -> None:
    """Try whether the store and the bucket do what the queue needs. The exit code is 1 if they do not."""
    found = _with_bucket(location, lambda bucket: bucket.examine_bucket())
    if location.as_json:
        print_json([{"check": each.name, "ok": each.ok, "reason": each.reason} for each in found])
    else:
        rows = [(each.name, "ok" if each.ok else "wrong", each.reason) for each in found]
        print_table(("check", "", "what was seen"), rows)
    if not all(each.ok for each in found):
        print_message(
            "The queue does not work here. `qo init` sets a bucket up; the rest is up to the store."
        )
        raise click.exceptions.Exit(FAILED)


@click.group()
def ui() -> None:
    """The page that shows the queue in a browser."""


@ui.command()
@location_options
def deploy(location: Location) -> None:
    """Put the page into the bucket and print where it is."""
    deployed = _with_bucket(location, lambda bucket: bucket.deploy_page())
    print_message(deployed.access)
    if location.as_json:
        print_json({"url": deployed.url, "files": deployed.keys})
    else:
        click.echo(deployed.url)


@ui.command()
@click.option(
    "--seconds", type=SPAN, default="1h", show_default=True, help="How long it opens, such as 30m or 7d."
)
@location_options
def presign(seconds: float, location: Location) -> None:
    """Print an address that opens the page for some time.

    For a private bucket. The address opens the page and nothing else: the page asks for a key of its own.
    If a temporary key signs it, it expires with that.
    """
    from runtime.stores.s3.bucket.page_links import LONGEST_S

    if not 1 <= seconds <= LONGEST_S:
        raise click.BadParameter("a signature holds for 1 second to 7 days.", param_hint="--seconds")
    url = _with_bucket(location, lambda bucket: bucket.presign_page(int(seconds)))
    if location.as_json:
        print_json({"url": url, "seconds": int(seconds)})
    else:
        click.echo(url)


@click.command()
@click.argument("shell", type=_SHELLS)
def completion(shell: str) -> None:
    """Print what makes a shell complete `qo`.

    As in: eval "$(qo completion bash)"
    """
    from click.shell_completion import get_completion_class

    from handlers.objectqueue.cli import qo

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(qo, {}, "qo", "_QO_COMPLETE").source())


def _with_bucket(location: Location, work: Callable[[Bucket], Awaitable[Answer]]) -> Answer:
    from handlers.objectqueue.cli.bucket import run

    return run(work, location)
