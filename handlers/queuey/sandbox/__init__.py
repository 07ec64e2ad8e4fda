"""The sandbox of WASI binaries: child processes in which a binary has only its input and output."""

from __future__ import annotations

from handlers.queuey.sandbox.pool import Limits, SandboxPool, SandboxResult

__all__ = ["Limits", "SandboxPool", "SandboxResult"]
