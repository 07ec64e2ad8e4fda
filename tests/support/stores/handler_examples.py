"""A handler that uses every method of a store: the examples of `docs/reference/stores.md`, which run here."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.call import Call
from runtime.stores.contract import (
    Backlog,
    CreateResult,
    Cursor,
    EntityStore,
    HistoryEntry,
    LeaseProof,
    LeaseSettlement,
    RecordPage,
    Transitioned,
)
from tests.support.stores.records import DEAD, LOW, WAITING, ErrandRecord


class Errands:
    """Handler of the component that holds errands."""

    def __init__(self, errands: EntityStore[ErrandRecord]) -> None:
        self._errands = errands

    async def submit(self, errand: ErrandRecord, call: Call) -> ErrandRecord:
        """Submit an errand; a repeat with the same ticket finds the first one."""
        created = await self._errands.create(errand, call)
        return created.record

    async def submit_many(
        self, errands: Sequence[ErrandRecord], call: Call
    ) -> list[CreateResult[ErrandRecord]]:
        """Submit many in one step; `is_refused` says that there was no room for one."""
        return await self._errands.create_many(errands, call)

    async def show(self, key: str) -> ErrandRecord | None:
        """Show an errand as it is now."""
        return await self._errands.get(key)

    async def list_waiting(self, kind: str, after: Cursor | None) -> RecordPage[ErrandRecord]:
        """List a page of the waiting errands of a kind, oldest first; `next` goes on behind it."""
        return await self._errands.find(
            states=[WAITING], equal={"kind": kind}, after=after, size=20, newest_first=False
        )

    async def show_history(self, key: str) -> list[HistoryEntry]:
        """Show the audit trail of an errand, oldest first."""
        return await self._errands.history(key)

    async def count_open(self) -> int:
        """Count the errands that wait."""
        counts = await self._errands.count([WAITING])
        return counts[WAITING]

    async def cancel(self, key: str, call: Call) -> bool:
        """Cancel an errand that waits; `False` where it is in another state by now."""
        done = await self._errands.transition(key, "cancel", call)
        return done.applied

    async def move(self, key: str, source: int, target: int, call: Call) -> Transitioned:
        """Take the edge between two states that the request names."""
        edge = self._errands.edge_between(source, target, call)
        return await self._errands.transition(key, edge.name, call)

    async def advance(self, errand: ErrandRecord, percent: int, call: Call) -> Transitioned:
        """Record the progress of a leased errand: an update, with the proof of the lease."""
        lease = LeaseProof(errand.owner or "", errand.fence)
        return await self._errands.transition(
            errand.key, "advance", call, lease=lease, given={"progress": percent}
        )

    async def remark(self, key: str, text: str) -> ErrandRecord:
        """Change a field that no edge owns."""
        return await self._errands.update(key, remark=text)

    async def discard(self, key: str, call: Call) -> bool:
        """Delete a dead letter; `False` where it was revived in the meantime."""
        deleted = await self._errands.delete(key, DEAD, call)
        return deleted.applied

    async def discard_old(self, days: int, call: Call) -> int:
        """Delete all that may be deleted and have not changed for so many days."""
        return await self._errands.purge(days * 86400, call)

    async def claim(self, courier: str, call: Call) -> list[ErrandRecord]:
        """Lease up to two errands of a kind that the courier is able to do."""
        return await self._errands.claim(
            courier, 2, call, where={"kind": "parcel"}, capabilities=["lift", "drive"]
        )

    async def keep_alive(self, errand: ErrandRecord) -> bool:
        """Renew a lease; `False` where it was lost."""
        lease = LeaseProof(errand.owner or "", errand.fence)
        (renewed,) = await self._errands.renew([(errand.key, lease)])
        return renewed is not None

    async def finish(self, errand: ErrandRecord, result: str, call: Call) -> int:
        """Settle a lease with its result; raises the condition of role `lease_lost` where it has ended."""
        lease = LeaseProof(errand.owner or "", errand.fence)
        return await self._errands.settle(
            LeaseSettlement(errand.key, lease, "finish", {"result": result}), call
        )

    async def fail_all(self, errands: Sequence[ErrandRecord], error: str, call: Call) -> list[ErrandRecord]:
        """Settle many as failed; return those whose lease was lost. `is_final` rules out another attempt."""
        outcomes = await self._errands.settle_many(
            [
                LeaseSettlement(
                    each.key,
                    LeaseProof(each.owner or "", each.fence),
                    "retry",
                    {"error": error},
                    is_final=True,
                )
                for each in errands
            ],
            call,
        )
        return [
            each for each, outcome in zip(errands, outcomes, strict=True) if isinstance(outcome, Exception)
        ]

    async def finish_and_claim(self, courier: str, done: ErrandRecord, call: Call) -> Sequence[ErrandRecord]:
        """Settle one errand and lease the next, in one step."""
        settlement = LeaseSettlement(done.key, LeaseProof(courier, done.fence), "finish")
        exchanged = await self._errands.exchange(courier, [settlement], 0, call)
        return exchanged.claimed

    async def claim_soon(self, courier: str, call: Call) -> list[ErrandRecord]:
        """Lease an errand, or wait for one for up to 20 seconds; a wake-up is no promise."""
        if not (claimed := await self._errands.claim(courier, 1, call)) and await self._errands.wait(20.0):
            claimed = await self._errands.claim(courier, 1, call)
        return claimed

    async def show_next_change(self, key: str) -> ErrandRecord | None:
        """Show an errand when it has changed, or after 20 seconds as it is: long polling."""
        await self._errands.wait(20.0, key=key)
        return await self._errands.get(key)

    async def close_counter(self) -> frozenset[int]:
        """Stop claims of errands of low urgency; those that are leased go on."""
        await self._errands.pause(LOW)
        return await self._errands.paused()

    async def open_counter(self) -> frozenset[int]:
        """Let claims of errands of low urgency go on."""
        await self._errands.resume(LOW)
        return await self._errands.paused()

    async def show_backlog(self) -> Backlog:
        """Show how many errands of low urgency can be claimed, and how long the oldest has waited."""
        backlog = await self._errands.backlog()
        return backlog[LOW]

    async def promote_all(self, call: Call) -> int:
        """Run a clock by hand, batch by batch; nodes do so by themselves."""
        total = 0
        while count := await self._errands.run_due("promote", call):
            total += count
        return total

    async def describe_health(self) -> str:
        """Say whether the store can be used."""
        return await self._errands.health() or "ready"
