"""Renewals of leases: one statement for all, and a second look at what another transaction has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from runtime.stores.contract import LeaseProof, Record
from runtime.stores.postgres.claims.settlements import PostgresSettlements
from runtime.stores.postgres.context import moment_of
from runtime.stores.semantics.leases import lease_problem
from runtime.stores.store import Busy, GuardBreach


class PostgresRenewals(PostgresSettlements[Record]):
    """Renews the leases of one kind of entity."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        is_compiled = "claim" in self._statements and "holder" not in self._statements
        self._is_plain = is_compiled and self._is_timeless
        """Whether a claim is one statement: neither a holder nor a clock has to be looked at first.

        Where it is a transaction, that has rows for a moment which it does not claim: those are waited for.
        """

    # Renewing.

    async def renew(
        self, held: Sequence[tuple[str, LeaseProof]], *, seconds: float | None = None
    ) -> list[Any]:
        if self._rules.lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        codec = self._codec
        known = [(key, lease) for key, lease in held if codec.is_key(key)]
        for key, _ in () if self._is_timeless else known:
            await self._access(codec.as_key(key))
        actor = sorted(self._rules.entering.actors)[0] if self._rules.entering else ""
        given = self._lease_columns(known) | {"actor": actor, "seconds": seconds}
        rows = await self._answer(self._run("renew", **given)) if known else ()
        renewed = self._by_key(rows)
        left = {codec.as_key(key) for key, _ in known} - renewed.keys()
        if left and not self._is_plain:
            renewed |= await self._renew_locked(left, given)
            left -= renewed.keys()
        goes_on: dict[str, Any] = {}
        if left:
            rows = await self._answer(self._run("holds", keys=[*left]))
            goes_on = {str(row[self._key_field]): row for row in rows}
        return [self._renewed(key, lease, renewed, goes_on) for key, lease in held]

    async def _renew_locked(self, left: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
        """Renew leases once more, after whoever has their rows."""
        async with self._transaction() as connection:
            if not await self._run_in(connection, "lock", keys=[*left]):
                return {}
            return self._by_key(await self._run_in(connection, "renew", **given))

    def _by_key(self, rows: Sequence[Any]) -> dict[str, Any]:
        return {str(row[self._key_field]): self._codec.decode(row) for row in rows}

    def _renewed(
        self, key: str, proof: LeaseProof, renewed: Mapping[str, Any], others: Mapping[str, Any]
    ) -> Any:
        own, lease = self._codec.as_key(key), self._rules.lease
        assert lease is not None
        record = renewed.get(own)
        if record is not None and self._is_proven(record, proof):
            return record
        row = others.get(own)
        if row is not None:
            record = self._codec.decode(row)
            if lease_problem(self._rules, record, *proof, moment_of(row)) is None:
                return Busy("another transaction has it")
        self._measures.lease_lost()
        return None

    def _is_proven(self, record: Any, proof: LeaseProof) -> bool:
        lease = self._rules.lease
        assert lease is not None
        is_owner = not proof.owner or getattr(record, lease.owner) == proof.owner
        return is_owner and (not proof.fence or getattr(record, lease.fence) == proof.fence)
