"""What fits a holder: the sets of needs that it can meet, and what comes next of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Generic

from runtime.model.lifecycles import Lease
from runtime.stores.bounded import BoundedMap
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.rows import texts_of
from runtime.stores.store import Record

_REMEMBERED = 10_000
_COMBINATIONS = 1000


class Ahead:
    """The keys that come next, as the last look saw them; claims that are under way name different ones."""

    def __init__(self) -> None:
        self._next: Sequence[str] = ()
        self._named: set[str] = set()

    def draw(self, most: int, spare: int) -> Sequence[str]:
        """As many as are to be taken, which nobody else gets until they are given back, and some to spare.

        Whoever asks next is given the spares as well: they come first if nobody has needed them.
        """
        drawn, self._next = self._next[: most + spare], self._next[most:]
        self._named.update(drawn[:most])
        return drawn

    def seen(self, drawn: Sequence[str], ahead: Sequence[str]) -> None:
        """Gives back what was drawn, for what is next now."""
        self._named.difference_update(drawn)
        named = self._named
        self._next = [key for key in ahead if key not in named] if named else ahead


class Fit:
    """The signatures of all sets of needs that can be met with certain offers."""

    def __init__(self, signatures: Sequence[str]) -> None:
        self.signatures = signatures
        self.ahead = Ahead()


class Fitting(Generic[Record]):
    """Who offers what, and which sets of needs there are. A claim that believes something else is refused."""

    def __init__(self, entities: Entities[Record], lease: Lease) -> None:
        self._entities = entities
        self._lease = lease
        self._parts = entities.kept.indexes[lease.index or ""].parts
        self._version = ""
        self._known: dict[str, frozenset[str]] = {}
        self._offers: BoundedMap[str] = BoundedMap(_REMEMBERED)
        self._fits: BoundedMap[Fit] = BoundedMap(_COMBINATIONS)

    def is_unknown(self, holder: str) -> bool:
        """Whether nobody has asked yet what a holder offers."""
        return self._lease.holder is not None and self._offers.get(holder) is None

    def believed(self, holder: str, fit: Fit) -> dict[str, Any]:
        """What a claim goes by."""
        return {
            "believed_offers": self._offers.get(holder) or "",
            "believed_version": self._version,
            "sets": len(fit.signatures),
        }

    def of(self, holder: str, narrowed: Collection[str] | None) -> Fit:
        """What fits a holder, which may offer less for once."""
        listed = self._offers.get(holder)
        only = "*" if narrowed is None else sorted(narrowed)
        name = f"{self._version} {listed} {only}"
        fit = self._fits.get(name)
        if fit is None:
            fit = Fit(self._signatures(listed, narrowed))
            self._fits.add(name, fit)
        return fit

    def questions(self, holder: str) -> list[tuple[Any, ...]]:
        """What the server is asked about a holder and the sets of needs."""
        entities, lease = self._entities, self._lease
        asked: list[tuple[Any, ...]] = []
        if lease.holder is not None:
            other = entities.system.lifecycles[lease.holder.entity]
            assert other.in_redis is not None
            asked.append(
                ("HGET", entities.key(other.in_redis.hash, **{other.key: holder}), lease.holder.offers)
            )
        if self._parts is not None:
            known = entities.key(self._parts.known)
            asked += [("GET", f"{known}:version"), ("HGETALL", known)]
        return asked

    def learn(self, holder: str, answers: Sequence[Any]) -> None:
        """Takes in what the server answered."""
        left = list(answers)
        if self._lease.holder is not None:
            self._offers.remove(holder)
            self._offers.add(holder, left.pop(0) or "")
        if self._parts is not None:
            self._version = left[0] or "0"
            flat = left[1]
            self._known = {
                each: frozenset(texts_of(texts)) for each, texts in zip(flat[0::2], flat[1::2], strict=True)
            }

    def _signatures(self, listed: str | None, narrowed: Collection[str] | None) -> list[str]:
        if self._parts is None:
            return []
        offered = None
        if self._lease.holder is not None:
            offered = frozenset(texts_of(listed or "[]"))
            offered = offered if narrowed is None else offered & frozenset(narrowed)
        return [each for each, needs in self._known.items() if offered is None or needs <= offered]
