# mypy: ignore-errors
"""The films that wait, first in, first out."""

from __future__ import annotations

from generated.studio import messages as m
from generated.studio.policy import IDLE_WAIT
from runtime.call import Call
from runtime.world import World


class Rack:
    """The order of the films that wait."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._films: dict[str, None] = {}

    async def hang_film(self, request: m.HangFilmRequest, _call: Call) -> m.HangFilmResponse:
        self._films.setdefault(request.film_id)
        return m.HangFilmResponse(accepted=True)

    async def take_film(self, _request: m.TakeFilmRequest, _call: Call) -> m.TakeFilmResponse:
        if not self._films:
            await self._world.sleep(IDLE_WAIT / 1000)
        if not self._films:
            return m.TakeFilmResponse(found=False)
        film_id = next(iter(self._films))
        del self._films[film_id]
        return m.TakeFilmResponse(found=True, film_id=film_id)

    async def remove_film(self, request: m.RemoveFilmRequest, _call: Call) -> m.RemoveFilmResponse:
        removed = request.film_id in self._films
        self._films.pop(request.film_id, None)
        return m.RemoveFilmResponse(removed=removed)
