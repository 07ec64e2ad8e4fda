"""Where WASI binaries run: in processes of their own, with nothing but what they read and write."""

from __future__ import annotations

from handlers.queuey.sandbox.pool import Limits, Run, Sandboxes

__all__ = ["Limits", "Run", "Sandboxes"]
