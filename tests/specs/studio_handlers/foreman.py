# mypy: ignore-errors
"""Gives films to printers, and their prints to the archive."""

from __future__ import annotations

from generated.studio import messages as m
from generated.studio.services import ArchiveService, LedgerService, RackService
from runtime.call import Call


class Foreman:
    """Has no state."""

    def __init__(self, ledger: LedgerService, rack: RackService, archive: ArchiveService) -> None:
        self._ledger = ledger
        self._rack = rack
        self._archive = archive

    async def fetch_film(self, request: m.FetchFilmRequest, call: Call) -> m.FetchFilmResponse:
        taken = await self._rack.take_film(m.TakeFilmRequest(printer_id=request.printer_id), call)
        if not taken.found:
            return m.FetchFilmResponse(assigned=False)
        await self._ledger.read_film(m.ReadFilmRequest(film_id=taken.film_id), call)
        moved = await self._move(taken.film_id, m.WAITING, m.DEVELOPING, call)
        return m.FetchFilmResponse(assigned=moved, film_id=taken.film_id)

    async def report_film(self, request: m.ReportFilmRequest, call: Call) -> m.ReportFilmResponse:
        state = m.DEVELOPED if request.picture else m.SPOILED
        stored = m.StorePrintRequest(film_id=request.film_id, final_state=state, picture=request.picture)
        await self._archive.store_print(stored, call)
        return m.ReportFilmResponse(accepted=await self._move(request.film_id, m.DEVELOPING, state, call))

    async def _move(self, film_id: str, expected: int, target: int, call: Call) -> bool:
        request = m.MoveFilmRequest(film_id=film_id, expected_state=expected, next_state=target)
        return (await self._ledger.move_film(request, call)).moved
