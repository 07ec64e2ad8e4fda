# mypy: ignore-errors
"""The prints of all films."""

from __future__ import annotations

from generated.studio import messages as m
from runtime.call import Call


class Archive:
    """The first print of each film."""

    def __init__(self) -> None:
        self._prints: dict[str, m.StorePrintRequest] = {}

    async def store_print(self, request: m.StorePrintRequest, _call: Call) -> m.StorePrintResponse:
        stored = self._prints.setdefault(request.film_id, request)
        return m.StorePrintResponse(stored=stored == request, already_exists=stored is not request)

    async def get_print(self, request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        stored = self._prints.get(request.film_id)
        if stored is None:
            return m.GetPrintResponse(found=False)
        return m.GetPrintResponse(
            found=True,
            film_id=stored.film_id,
            minutes=stored.minutes,
            caption=stored.caption,
            picture=stored.picture,
        )
