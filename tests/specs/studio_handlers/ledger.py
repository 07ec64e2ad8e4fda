# mypy: ignore-errors
"""The record of each film."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import asdict

from generated.studio import errors
from generated.studio import messages as m
from generated.studio.settings import LedgerSettings
from runtime.call import Call
from runtime.stores.bounded import BoundedMap
from runtime.stores.contract import EntityStore
from runtime.stores.store import NoSuchEntity
from runtime.world import World


class FilmRecord(Struct, frozen=True):
    """The record of a film."""

    film_id: str
    paper: str = ""
    state: m.FilmState.ValueType = m.FILM_STATE_UNSPECIFIED
    noted_at_ms: int = 0
    started_at_ms: int = 0
    ended_at_ms: int = 0


class Ledger:
    """The owner of all records, and of the order numbers of earlier films."""

    def __init__(self, records: EntityStore[FilmRecord], settings: LedgerSettings, world: World) -> None:
        self._records = records
        self._world = world
        self._film_ids: BoundedMap[str] = BoundedMap(settings.known_orders)

    async def note_film(self, request: m.NoteFilmRequest, call: Call) -> m.NoteFilmResponse:
        known = self._film_ids.get(request.order_number) if request.order_number else None
        if known is not None:
            if (await self._get(known)).paper != request.order.paper:
                raise errors.OrderReused(order_number=request.order_number)
            return m.NoteFilmResponse(film_id=known, known=True)
        film_id = self._world.new_id()
        if request.order_number:
            self._film_ids.add(request.order_number, film_id)
        await self._records.create(FilmRecord(film_id, request.order.paper), call)
        return m.NoteFilmResponse(film_id=film_id)

    async def strike_film(self, request: m.StrikeFilmRequest, call: Call) -> m.StrikeFilmResponse:
        deleted = await self._records.delete(request.film_id, request.expected_state, call)
        return m.StrikeFilmResponse(struck=deleted.applied)

    async def read_film(self, request: m.ReadFilmRequest, _call: Call) -> m.ReadFilmResponse:
        return m.ReadFilmResponse(film=m.Film(**asdict(await self._get(request.film_id))))

    async def list_notes(self, _request: m.ListNotesRequest, _call: Call) -> m.ListNotesResponse:
        page = await self._records.find(size=200)
        return m.ListNotesResponse(films=[m.Film(**asdict(record)) for record in page.records])

    async def move_film(self, request: m.MoveFilmRequest, call: Call) -> m.MoveFilmResponse:
        edge = self._records.edge_between(request.expected_state, request.next_state, call)
        try:
            moved = await self._records.transition(request.film_id, edge.name, call)
        except NoSuchEntity:
            raise errors.FilmUnknown(film_id=request.film_id) from None
        return m.MoveFilmResponse(moved=moved.applied, state=m.FilmState.ValueType(moved.state))

    async def _get(self, film_id: str) -> FilmRecord:
        record = await self._records.get(film_id)
        if record is None:
            raise errors.FilmUnknown(film_id=film_id)
        return record
