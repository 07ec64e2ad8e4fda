"""Log events of workers, as a handler would name them."""

from __future__ import annotations

from runtime.model.system import Event
from runtime.worker.config import WorkerEvents

EVENTS = WorkerEvents(Event("started", "INFO"), Event("lost", "WARNING"))
