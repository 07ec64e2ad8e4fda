# mypy: ignore-errors
"""What visitors may ask for, as steps of the rooms behind the desk."""

from __future__ import annotations

from generated.studio import errors
from generated.studio import messages as m
from generated.studio.policy import COMPENSATION
from generated.studio.services import ArchiveService, LedgerService, RackService
from runtime.call import Call
from runtime.call.conditions import CallFailed
from runtime.world import World


class Desk:
    """Has no state."""

    def __init__(
        self, ledger: LedgerService, rack: RackService, archive: ArchiveService, world: World
    ) -> None:
        self._ledger = ledger
        self._rack = rack
        self._archive = archive
        self._world = world

    async def hand_in(self, request: m.HandInRequest, call: Call) -> m.HandInResponse:
        noted = await self._ledger.note_film(
            m.NoteFilmRequest(order=request.order, order_number=request.order_number), call
        )
        if noted.known:
            return m.HandInResponse(film_id=noted.film_id)
        try:
            hung_at_ms = self._world.now_ms()
            await self._rack.hang_film(m.HangFilmRequest(film_id=noted.film_id, hung_at_ms=hung_at_ms), call)
        except CallFailed:
            struck = m.StrikeFilmRequest(film_id=noted.film_id, expected_state=m.WAITING)
            await self._ledger.strike_film(struck, call.under(COMPENSATION))
            raise errors.FilmNotAccepted from None
        return m.HandInResponse(film_id=noted.film_id)

    async def find_film(self, request: m.FindFilmRequest, call: Call) -> m.FindFilmResponse:
        return m.FindFilmResponse(film=await self._read(request.film_id, call))

    async def withdraw_film(self, request: m.WithdrawFilmRequest, call: Call) -> m.Film:
        film_id = request.film_id
        removed = await self._rack.remove_film(m.RemoveFilmRequest(film_id=film_id), call)
        if removed.removed:
            await self._archive.store_print(
                m.StorePrintRequest(film_id=film_id, final_state=m.WITHDRAWN), call
            )
            await self._ledger.move_film(
                m.MoveFilmRequest(film_id=film_id, expected_state=m.WAITING, next_state=m.WITHDRAWN), call
            )
        return await self._read(film_id, call)

    async def list_films(self, _request: m.ListFilmsRequest, call: Call) -> m.ListFilmsResponse:
        return m.ListFilmsResponse(films=(await self._ledger.list_notes(m.ListNotesRequest(), call)).films)

    async def _read(self, film_id: str, call: Call) -> m.Film:
        return (await self._ledger.read_film(m.ReadFilmRequest(film_id=film_id), call)).film
