"""Those who wait in this process, and what scripts hand to them while they do.

A claim that finds nothing leaves a note that its holder waits, and where. Whoever creates an entity that the
holder can take leases it to the holder in the same script, and says so on the channel of this process. A ring
takes all notes away, because then something is there that comes before whatever is created next.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Generic

from runtime.model.lifecycles import Lease
from runtime.stores.redis.claims.bell import Bell
from runtime.stores.redis.connection.server import Unavailable
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.given import GIVEN
from runtime.stores.redis.scripts import decoded
from runtime.stores.store import Record

_RINGS = 5
"""Where the answer to a claim that has left a note has the number of the last ring."""


class Place:
    """Where somebody waits."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.handed: dict[str, Any] | None = None
        self.over: asyncio.Future[None] | None = None
        """What ends the waiting."""
        self.breaks: int | None = None
        """How often the bell had not been heard when a note was left; None if there is none."""
        self.rings = 0
        """The number of the last ring before the note was left."""

    @property
    def is_quiet(self) -> bool:
        """Whether it does nothing but wait."""
        return self.over is not None and not self.over.done()


class Handing(Generic[Record]):
    """Hands over what comes for those who wait."""

    def __init__(self, entities: Entities[Record], lease: Lease, bell: Bell) -> None:
        self._entities = entities
        self._owner = lease.owner
        self._bell = bell
        self._places: dict[str, list[Place]] = {}
        self._leaving: set[asyncio.Task[bool]] = set()
        self._idle = self._channel = ""
        if lease.holder is not None and lease.holder.idle is not None:
            self._idle = entities.key(lease.holder.idle)
            self._channel = f"{self._idle}:{uuid.uuid4().hex}"
            bell.hear(self._channel, self._told)

    def noted(self, place: Place, actor: str, offers: str, signatures: Sequence[str]) -> str:
        """The note that a claim is to leave for a place: all that a script has to know. Empty for none."""
        if not self._idle or not self._bell.is_heard:
            return ""
        place.breaks = self._bell.breaks
        return f"{self._channel} {actor} {' '.join(signatures)} |{offers}"

    def answered(self, place: Place, answer: Sequence[Any]) -> None:
        """Takes in what a claim has answered, which says whether it has left a note."""
        if len(answer) > _RINGS:
            place.rings = answer[_RINGS]
        else:
            place.breaks = None

    def begun(self, holder: str) -> Place:
        """Where a holder waits from now on, until it is `ended`."""
        place = Place(holder)
        self._places.setdefault(holder, []).append(place)
        return place

    def ended(self, place: Place) -> None:
        """Nobody waits there any more."""
        left = self._places[place.holder]
        left.remove(place)
        if not left:
            del self._places[place.holder]
        if place.breaks is not None:
            # Whoever waited was stopped, and can wait for no answer either.
            self._leave(place)

    async def heard(self, place: Place, rings: int, timeout_s: float) -> None:
        """Waits until something is handed to the place, or the bell has rung since somebody looked."""
        bell, loop = self._bell, asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while place.handed is None and (left := until - loop.time()) > 0:
            place.over = bell.awaiting()
            is_rung = await bell.heard_since(rings, left, place.over)
            if is_rung and (place.breaks != bell.breaks or bell.latest > place.rings):
                return
            # What had rung before the note was left was there for all to see who looked then.
            rings = bell.rings

    async def settled(self, place: Place) -> None:
        """Takes the note away. What was handed over until then is at the place when it returns.

        Raises Unavailable if something may have been handed over that nobody will ever hear of.
        """
        breaks, place.breaks = place.breaks, None
        if place.handed is not None or breaks is None or await self._withdraw(place):
            return
        if not await self._bell.caught_up() or breaks != self._bell.breaks:
            raise Unavailable("something may have been handed over unheard", unknown=True)

    def _leave(self, place: Place) -> None:
        task = asyncio.create_task(self._withdraw(place))
        self._leaving.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[bool]) -> None:
        self._leaving.discard(task)
        if not task.cancelled():
            task.exception()  # A server that is away hands nothing over either, and then nobody listens.

    async def _withdraw(self, place: Place) -> bool:
        """Whether the note was still there, so that nothing was handed over for it."""
        (removed,) = await self._entities.server.ask(("HDEL", self._idle, place.holder))
        return bool(removed)

    def _told(self, text: str) -> None:
        holder, _, handed = text.rpartition("\n")
        places = [each for each in self._places.get(holder, ()) if each.handed is None]
        # Of several places of a holder one may just be looking, and perhaps finds something by itself.
        place = next((each for each in places if each.is_quiet), places[0] if places else None)
        if place is not None:
            row = decoded(handed)
            place.handed, place.breaks = {**row.pop(GIVEN), **row, self._owner: holder}, None
            if place.over is not None and place.is_quiet:
                place.over.set_result(None)
