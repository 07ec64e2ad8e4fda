"""Errors of the launcher, with messages for the user."""

from __future__ import annotations

from collections.abc import Sequence


class LaunchError(Exception):
    """A deployment cannot run; the message is for the user."""

    exit_code = 1


class WrongSettings(LaunchError):
    """Invalid settings."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class NoHandlers(LaunchError):
    """Components without a handler, or with a handler without a method."""

    exit_code = 2


class PortsTaken(LaunchError):
    """Ports that other processes listen on."""


class ProcessDied(LaunchError):
    """A process of the deployment died: a node or an embedded server."""

    def __init__(self, name: str, exit_code: int, last_lines: Sequence[str]) -> None:
        how = f"with exit code {exit_code}" if exit_code >= 0 else f"of signal {-exit_code}"
        tail = "\n".join(f"  {line}" for line in last_lines)
        super().__init__(
            f"{name} died {how}." + (f" Its last lines:\n{tail}" if tail else " It said nothing.")
        )
        self.brief = f"{name}: died {how}; the others are stopped"
        self.what = f"died {how}"
        self.name = name
        self.code = exit_code
        self.last_lines = tuple(last_lines)


class NodeDied(ProcessDied):
    """A node died."""


class RestartFailed(LaunchError):
    """A process of the deployment could not be restarted."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} could not be started: {reason}")
        self.what = "could not be started"
        self.name = name
        self.last_lines = (reason,)


class NotHealthy(LaunchError):
    """Nodes that run and are not healthy."""
