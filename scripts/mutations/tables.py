"""Mutations of what an engine has of its own beside the semantics: order, retention, and unique values."""

from __future__ import annotations

from scripts.mutations.mutation import Mutation, list_mutations

MEMORY: list[Mutation] = [
    *list_mutations(
        "runtime/stores/memory/table.py",
        {
            "kept_in.unique": ("self._unique[name, value] = (key, unique_until(rules, name, now))", "pass"),
            "kept_in.unique_for": ("if until is None or until > now:", "if True:"),
            "retention": (
                "len(self._ended) > self._max_terminal:",
                "len(self._ended) > self._max_terminal + 1:",
            ),
            "kept_in.expires": ("ending[0][0] <= now", "ending[0][0] < now - 1_000_000"),
            "terminal": ("or self.rules.state(record) not in self._terminal:", "or False:"),
            "create.ceiling": (
                "self.ceiling_count += self.is_under_ceiling(new) - self.is_under_ceiling(old)",
                "self.ceiling_count += self.is_under_ceiling(new)",
            ),
            "listed_by": ("return lambda record: to_moment(field(record)) or 0", "return lambda record: 0"),
        },
    ),
]
JSON: list[Mutation] = [
    *list_mutations(
        "tests/stores/toy/table.py",
        {
            "retention": ("ended[: -self._max_terminal]", "ended[: -self._max_terminal - 1]"),
            "kept_in.unique_for": ("and (until is None or until > now)", ""),
            "lease.oldest_by": (
                "leases.claim_age(rules, record), key)\n",
                "-leases.claim_age(rules, record), key)\n",
            ),
            "due.at": ("is not None and at < now\n        )", "is not None and at < now - 1000\n        )"),
            "listed_by": ("return (self.rules.moment_at(record, name) or 0) if name else 0", "return 0"),
        },
    ),
]
SQLITE: list[Mutation] = [
    *list_mutations(
        "codegen/templates/sqlite/statements.sql.j2",
        {
            "lease.oldest_by": (
                "ORDER BY {{ lease.oldest_by }}, {{ entity.number }};",
                "ORDER BY {{ entity.number }};",
            ),
            "lease.owner": (" AND {{ lease.owner }} = :owner;", " AND :owner IS NOT NULL;"),
            "due.at": (
                "{{ entity.column(clock.field) }} < :before",
                "{{ entity.column(clock.field) }} < :before - 1000000",
            ),
            "listed_by": ('ORDER BY {{ order ~ direction ~ ", " if order else "" }}', "ORDER BY "),
            "kept_in.unique": (
                "WHERE {{ entity.column(each) }} = :value;",
                "WHERE {{ entity.column(each) }} = :value AND 0;",
            ),
            "kept_in.unique_for": (" AND until > :now;", ";"),
            "kept_in.expires": (
                "WHERE until <= :now ORDER BY until",
                "WHERE until <= :now - 1000000 ORDER BY until",
            ),
            "retention": ("_ended ORDER BY number LIMIT 1;", "_ended ORDER BY number DESC LIMIT 1;"),
            "delete.from": (
                "IN ({{ entity.words(entity.row.delete.from_) }});",
                "NOT IN ({{ entity.words(entity.row.delete.from_) }});",
            ),
        },
    ),
    *list_mutations(
        "runtime/stores/sqlite/claims.py",
        {
            "lease.claim_order": (
                "for rank in self._lease.claim_order or (None,):\n            if rank is None",
                "for rank in self._lease.claim_order[::-1] or (None,):\n            if rank is None",
            ),
            "lease.holder.needs": ("if is_able(frozenset(needed), offered):", "if True:"),
            "due.after": (
                "-(-(now - delay(self._rules, self._due)) // self._unit)",
                "-(-now // self._unit) - 10**9",
            ),
        },
    ),
    *list_mutations(
        "runtime/stores/sqlite/table.py",
        {
            "terminal": ("self.rules.state(record) not in self.rules.lifecycle.terminal:", "False:"),
            "lease.fence": ('"fence": fence,', '"fence": 0,'),
        },
    ),
]
S3: list[Mutation] = [
    *list_mutations(
        "runtime/stores/s3/claims/table_claims.py",
        {
            "lease.oldest_by": (
                "return rank or 0, claim_age(self._rules, found.record), key",
                "return rank or 0, 0, key",
            ),
            "lease.claim_order": ("return rank or 0, claim_age(", "return 0, claim_age("),
        },
    ),
    *list_mutations(
        "runtime/stores/s3/unique_values.py",
        {
            "kept_in.unique_for": (
                "if reservation.until is not None and reservation.until <= now:",
                "if False:",
            ),
            "kept_in.unique": ("if reservation is not None and reservation.key == key:", "if False:"),
        },
    ),
    *list_mutations(
        "runtime/stores/s3/listing.py",
        {
            "listed_by": ("at = (to_moment(getattr(record, by)) or 0) if by else 0", "at = 0"),
            "status": ("if query.states and self._rules.state(record) not in query.states:", "if False:"),
        },
    ),
    *list_mutations(
        "runtime/stores/s3/changes.py",
        {"kept_in.expires": ("return until is not None and until <= now", "return False")},
    ),
    *list_mutations(
        "runtime/stores/s3/leasing.py",
        {
            "lease.holder.capacity": ("await self._count_leases(owner), count)", "0, count)"),
            "due.on_access": (
                "        await self._run_on_access(self._now(), call)\n        lease, rules",
                "        lease, rules",
            ),
        },
    ),
]
