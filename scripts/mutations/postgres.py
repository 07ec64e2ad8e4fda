"""Mutations of the SQL of the engine in PostgreSQL, where it is rendered."""

from __future__ import annotations

from scripts.mutations.mutation import Mutation, list_mutations

_EMITTERS = "codegen/emit/postgres"
_STATEMENTS = "codegen/templates/postgres/statements"

POSTGRES: list[Mutation] = [
    *list_mutations(
        f"{_EMITTERS}/edge_words.py",
        {
            "transitions.to": (
                "made = {entity.row.status: quoted(edge.to)}",
                "made = {entity.row.status: quoted(edge.from_)}",
            ),
            "transitions.when": ('yield from (f"{self.read(flag)} IS TRUE" for flag in edge.when)', ""),
            "transitions.where": (
                'yield from (f"{self.read(name)} = {self.literal(name, value)}" '
                "for name, value in edge.where.items())",
                "yield from ()",
            ),
            "transitions.stamps": ("for name in edge.stamps}", "for name in ()}"),
            "transitions.sets": ("for name, value in edge.sets.items()}", "for name, value in ()}"),
            "transitions.copy": ("for name, other in edge.copy_.items()}", "for name, other in ()}"),
            "transitions.clear": ("for name in edge.clear}", "for name in ()}"),
            "transitions.increment": (
                'return f"{self.number(name)} + 1"',
                'return f"{self.number(name)} + 2"',
            ),
            "revision": (
                "            made[entity.row.revision] = self.increment(entity.row.revision)\n"
                "        return {entity.column(name): value for name, value in made.items()}\n\n"
                "    def exchanges(",
                "            pass\n"
                "        return {entity.column(name): value for name, value in made.items()}\n\n"
                "    def exchanges(",
            ),
            "from_request.keep_first": ("            if keep_first\n", "            if False\n"),
            "lease.owner": (
                'yield lease.owner, f"{source}.owner"',
                "yield lease.owner, f\"'x' || {source}.owner\"",
            ),
            "lease.fence": ("yield lease.fence, self.increment(lease.fence)", "yield lease.fence, '1'"),
            "lease.expires": (
                "            if lease.expires:\n                yield lease.expires, self.lease_end",
                "            if False:\n                yield lease.expires, self.lease_end",
            ),
            "lease.renewed": [
                ('yield lease.renewed, self.time_value(lease.renewed, f"{source}.moment")', "pass"),
                ('made[lease.renewed] = self.time_value(lease.renewed, "held.moment")', "pass"),
            ],
            "lease.seconds": ("+ {length} * interval '1 second'", "+ 2 * {length} * interval '1 second'"),
            "lease.token": ("yield lease.token, self.unset(lease.token)", "pass"),
            "lease.keeps_owner": ("if not (lease.keeps_owner and", "if not (False and"),
            "overrides": ("if not special or overrides is None:", "if True:"),
            "backoff.until": (
                'yield until, self.time_value(until, f"{source}.moment") if is_over',
                "second = \"interval '1 second'\"\n"
                '            yield until, self.time_value(until, f"{source}.moment + {second}") if is_over',
            ),
        },
    ),
    *list_mutations(
        f"{_EMITTERS}/claim_words.py",
        {
            "lease.claim_order": (
                "for value in lease.claim_order\n",
                "for value in reversed(lease.claim_order)\n",
            ),
            "lease.index": (
                "        if index is not None:\n            yield from",
                "        if False:\n            yield from",
            ),
            "kept_in.indexes": [
                ("        if index.only_if:", "        if False:"),
                ("        if index.only_unless:", "        if False:"),
                ("elif not has_state:", "elif False:"),
            ],
            "lease.holder.needs": (
                "yield f\"{self._edges.read(lease.holder.needs)} <@ {p('offered', 'text[]')}\"",
                "yield f\"({self._edges.read(lease.holder.needs)} <@ {p('offered', 'text[]')}) IS NOT NULL\"",
            ),
            "lease.only": (
                'yield f"({offered} IS NULL OR {self._edges.read(lease.only)} = ANY({offered}))"',
                'yield f"({offered} IS NULL OR true)"',
            ),
            "lease.oldest_by": (
                'return f"{self._edges.read(lease.oldest_by)}{first}, ',
                'return f"{self._edges.read(lease.oldest_by)} DESC{first}, ',
            ),
            "due.at": (
                'yield f"{self._edges.read(due.at)} < {self._due_time(due, p)}"',
                'yield f"{self._edges.read(due.at)} <= {self._due_time(due, p)}"',
            ),
            "due.after": (
                "now = f\"{now} - {p(due.after, 'double precision')} * interval '1 second'\"",
                "now = f\"{now} - 0 * {p(due.after, 'double precision')} * interval '1 second'\"",
            ),
            "due.holder_in": [
                (
                    'yield f"({gone} OR {state} = {quoted(due.holder_in)})"',
                    'yield f"({state} = {quoted(due.holder_in)})"',
                ),
                ('yield f"({gone} OR {state} = {quoted(due.holder_in)})"', 'yield f"({gone})"'),
            ],
            "updates.in": ("return [*change.in_]", "return [*change.in_][:1]"),
            "transitions.from": ("return [*change.sources]", "return [change.to]"),
            "delete.from": ("return [*deletion.from_] if deletion else []", "return []"),
            "lease.state": ("state = quoted(other.lease.state)", "state = quoted(other.initial)"),
        },
    ),
    *list_mutations(
        f"{_STATEMENTS}/leases/lease_parts.sql.j2",
        {
            "lease.owner": (
                "AND (given.owner = '' OR {{ entity.table }}.{{ entity.lease.owner }} = given.owner)",
                "AND given.owner IS NOT NULL",
            ),
            "lease.fence": (
                "AND (given.fence = 0 OR {{ entity.table }}.{{ entity.lease.fence }} = given.fence)",
                "AND given.fence IS NOT NULL",
            ),
        },
    ),
    *list_mutations(
        f"{_STATEMENTS}/due.sql.j2",
        {"due.batch": ('LIMIT {{ p("most", "integer") }}', 'LIMIT {{ p("most", "integer") }} + 1')},
    ),
    *list_mutations(
        f"{_STATEMENTS}/find_unique.sql.j2",
        {
            "kept_in.unique": (
                '= ANY({{ p("record_" ~ name, entity.type_of(name) ~ "[]") }})',
                '= ANY({{ p("record_" ~ name, entity.type_of(name) ~ "[]") }}) AND false',
            ),
            "kept_in.unique_for": ("AND remembered.until > clock_timestamp()", ""),
        },
    ),
    *list_mutations(
        f"{_STATEMENTS}/depth.sql.j2",
        {"create.ceiling": ("SELECT count(*) FROM", "SELECT count(*) - 1 FROM")},
    ),
    *list_mutations(
        f"{_STATEMENTS}/find.sql.j2",
        {
            "listed_by": (
                '{{ entity.table ~ "." ~ at ~ " " ~ direction ~ ", " if at }}{{ entity.table '
                "}}.{{ entity.key }}\n"
                "OFFSET",
                "{{ entity.table }}.{{ entity.key }}\nOFFSET",
            ),
            "status": ("WHERE one.{{ entity.status }} = wanted.state", "WHERE wanted.state IS NOT NULL"),
        },
    ),
    *list_mutations(
        f"{_STATEMENTS}/held.sql.j2",
        {"delete.unless_holding": ("SELECT count(*) FROM", "SELECT 0 * count(*) FROM")},
    ),
    *list_mutations(
        "runtime/stores/postgres/steps.py",
        {
            "due.grace": (
                "return is_now and is_due(",
                "return is_due(",
            ),
            "transitions.reason": ("reason = given.get(named) if named else None", "reason = None"),
        },
    ),
]
