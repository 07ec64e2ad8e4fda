"""Why a deployment does not run, in words for whoever started it."""

from __future__ import annotations

from collections.abc import Sequence


class LaunchError(Exception):
    """Something that keeps a deployment from running. Its text is what the user reads."""

    exit_code = 1


class WrongSettings(LaunchError):
    """Variables that cannot be had as they were asked for."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class NoHandlers(LaunchError):
    """Components without a handler, or with one that lacks a method."""

    exit_code = 2


class PortsTaken(LaunchError):
    """Ports that others listen on."""


class Died(LaunchError):
    """A process of the deployment that ended by itself: a node or an embedded server."""

    def __init__(self, name: str, exit_code: int, last_lines: Sequence[str]) -> None:
        how = f"with exit code {exit_code}" if exit_code >= 0 else f"of signal {-exit_code}"
        told = "\n".join(f"  {line}" for line in last_lines)
        super().__init__(
            f"{name} died {how}." + (f" Its last lines:\n{told}" if told else " It said nothing.")
        )
        self.brief = f"{name}: died {how}; the others are stopped"
        self.what = f"died {how}"
        self.name = name
        self.code = exit_code
        self.last_lines = tuple(last_lines)


class NodeDied(Died):
    """A node that ended by itself."""


class NotRestarted(LaunchError):
    """A process of the deployment that could not be started again."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} could not be started: {reason}")
        self.what = "could not be started"
        self.name = name
        self.last_lines = (reason,)


class NotHealthy(LaunchError):
    """Nodes that run and do not answer."""
