"""Command line of every system: `charter <system> <method> …`, made from the tables on demand.

Nothing heavy is imported until a system is named, and gRPC not before a call is made.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import click

from runtime.node.systems import suggest_name, system_names


class _SuggestingGroup(click.Group):
    """A group that suggests the closest name for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            raise click.UsageError(f"There is no {args[0]!r} here.{suggest_name(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)


class _Systems(_SuggestingGroup):
    """The group of systems, each a group of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(system_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _Methods(cmd_name) if cmd_name in system_names() else None


class _Methods(_SuggestingGroup):
    """The methods of one system for external principals, each a command."""

    def __init__(self, system: str) -> None:
        about = (importlib.import_module(f"generated.{system}").__doc__ or system).partition(":")[0]
        super().__init__(system, help=f"{about}.", short_help=about)
        self._system = system
        self._commands: dict[str, click.Command] | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self._methods())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return self._methods().get(cmd_name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if not self._methods():
            formatter.write_paragraph()
            formatter.write_text(
                "No node of it takes gRPC calls, which is what this command speaks, so there is nothing to "
                f"call here. docs/reference/{self._system}.md has what it offers over HTTP."
            )

    def _methods(self) -> dict[str, click.Command]:
        if self._commands is None:
            from runtime.cli.commands import method_commands

            # A system may have commands of its own, of several calls; they come first.
            self._commands = {**_load_own_commands(self._system), **method_commands(self._system)}
        return self._commands


def _load_own_commands(system: str) -> dict[str, click.Command]:
    """Load the commands of `handlers/<system>/cli.py`, if there is one."""
    try:
        if importlib.util.find_spec(f"handlers.{system}.cli") is None:
            return {}
    except ModuleNotFoundError:
        return {}
    commands: dict[str, click.Command] = importlib.import_module(f"handlers.{system}.cli").COMMANDS
    return commands


@click.command(cls=_Systems)
def charter() -> None:
    """Call a system that was made from its spec.

    `charter SYSTEM --help` lists what can be called. Its address is --address or CHARTER_ADDRESS.

    Exit codes: 0 done, 1 refused, 2 wrong words or files, 3 not reached or not over in time, 4 what --watch
    waited for has failed.
    """


def main(*arguments: Any) -> None:
    """The entry point."""
    charter.main(args=list(arguments) or None, prog_name="charter")
