# mypy: ignore-errors
"""Develops one film at a time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from generated.studio import messages as m
from generated.studio.events import PRINTER_HEARTBEAT, PRINTER_STARTED
from generated.studio.services import ForemanService
from generated.studio.settings import PrinterSettings
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.world import World


class Printer:
    """Calls the foreman and no other component."""

    def __init__(self, foreman: ForemanService, settings: PrinterSettings, world: World) -> None:
        self._foreman = foreman
        self._settings = settings
        self._world = world

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Develop films until shutdown."""
        call.tell(PRINTER_STARTED, "asking for films", printer_id=self._settings.printer_id)
        while not stopping.is_set():
            call.tell(PRINTER_HEARTBEAT, "alive", printer_id=self._settings.printer_id)
            found = False
            with suppress(Failure):
                found = await self._develop(call)
            if not found:
                await self._world.sleep(self._settings.printer_pause_ms / 1000)

    async def _develop(self, call: Call) -> bool:
        fetched = await self._foreman.fetch_film(
            m.FetchFilmRequest(printer_id=self._settings.printer_id), call
        )
        if fetched.assigned:
            await self._foreman.report_film(
                m.ReportFilmRequest(film_id=fetched.film_id, picture=b"a picture"), call
            )
        return fetched.assigned
