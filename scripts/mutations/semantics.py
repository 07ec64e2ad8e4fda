"""Mutations of the semantics and of the steps, which memory, SQLite, S3 and the JSON files share."""

from __future__ import annotations

from scripts.mutations.mutation import Mutation, list_mutations

_FOLDER = "runtime/stores/semantics"

SEMANTICS: list[Mutation] = [
    *list_mutations(
        f"{_FOLDER}/edges.py",
        {
            "transitions.from": [
                ("if state != change.source and state not in change.others:", "if False:"),
                ("if state != change.source and state not in change.others:", "if state != change.source:"),
            ],
            "transitions.to": (
                "rules.lifecycle.status: edge.target}",
                "rules.lifecycle.status: edge.source}",
            ),
            "transitions.when": (
                "flags = change.when if isinstance(change, Transition) else ()",
                "flags: tuple[str, ...] = ()",
            ),
            "transitions.where": ("return not change.where or all(", "return True or all("),
            "transitions.by_name": (
                "if source in each.sources and each.target == target)",
                "if False and source in each.sources)",
            ),
            "transitions.stamps": ("for name in edge.stamps:", "for name in ():"),
            "transitions.sets": ("    if edge.sets:", "    if False:"),
            "transitions.copy": ("    if edge.copy:", "    if False:"),
            "transitions.clear": ("    if edge.clear:", "    if False:"),
            "transitions.multiply": [
                ("    if edge.multiply:", "    if False:"),
                ("math.ceil(", "math.floor("),
                ("int(min(grown, float(rules.values[growth.max])))", "int(grown)"),
            ],
            "transitions.increment": ("(getattr(record, name) or 0) + 1", "(getattr(record, name) or 0) + 2"),
            "updates.in": ("elif state not in change.states:", "elif False:"),
            "updates.stamps": ("for name in update.stamps}", "for name in ()}"),
            "updates.sets": ("    made.update(update.sets)\n", ""),
            "updates.clear": ("for name in update.clear:", "for name in ():"),
            "updates.fenced": ("return change.fenced", "return False"),
            "from_request.from": ("given.get(take.source)", "given.get(name)"),
            "from_request.default": ("value = take.default or None", "value = None"),
            "from_request.keep_first": ("if take.keep_first and", "if False and"),
            "backoff.until": (
                "made[edge.backoff.until] = wait_until(rules, edge, edge.backoff, record, now, world)",
                "pass",
            ),
            "backoff.count": ("if edge.increment != backoff.count:", "if edge.increment == backoff.count:"),
            "backoff.base": ("    base = _seconds(", "    base = 2 * _seconds("),
            "backoff.max": (
                "wait = min(base * _growth(rules, edge, backoff, record), most)",
                "wait = base * min(_growth(rules, edge, backoff, record), 512.0)",
            ),
            "backoff.times": (
                "rules.number(record, backoff.times) if backoff.times is not None else 2.0",
                "2.0",
            ),
            "backoff.kind": [
                ('if backoff.kind == "constant" or', "if"),
                ('if backoff.kind == "linear":', "if False:"),
            ],
            "backoff.jitter": ("if backoff.jitter and (", "if False and ("),
            "dead_letter.transition": [
                ("            edge = rules.taken_from(end, edge.source)\n", "            pass\n"),
                (
                    "    if is_final or is_exhausted(rules, ending, first.record, is_counted=True):",
                    "    if False:",
                ),
            ],
            "dead_letter.count": ("is_counted = edge.increment != ending.count", "is_counted = True"),
            "dead_letter.less": (" - (rules.number(record, end.less) if end.less else 0)", ""),
            "dead_letter.limit": (
                "return failures > limit if is_counted else failures >= limit",
                "return failures >= limit if is_counted else failures > limit",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/leases.py",
        {
            "lease.state": (
                "if lease is None or rules.state(record) != lease.state:\n        return LOST",
                "if lease is None:\n        return LOST",
            ),
            "lease.owner": [
                ("made[lease.owner] = owner", 'made[lease.owner] = "x" + owner'),
                ("if owner and getattr(record, lease.owner) != owner:", "if False:"),
            ],
            "lease.expires": [
                ("ends is not None and ends <= now", "ends is not None and ends < now"),
                ("return LOST if owner and is_expired(rules, record, now) else None", "return None"),
            ],
            "lease.renewed": (
                "        moment = rules.moment_after(record, now)\n"
                "        made[lease.renewed] = rules.time_value(lease.renewed, moment)",
                "        pass",
            ),
            "lease.fence": [
                ("(getattr(record, lease.fence) or 0) + 1", "(getattr(record, lease.fence) or 1)"),
                ("if fence and getattr(record, lease.fence) != fence:", "if False:"),
            ],
            "lease.seconds": ("return now + to_microseconds(", "return now + 2 * to_microseconds("),
            "lease.oldest_by": (
                "return (rules.moment_at(record, rules.lease.oldest_by) or 0) if rules.lease else 0",
                "return -((rules.moment_at(record, rules.lease.oldest_by) or 0) if rules.lease else 0)",
            ),
            "lease.claim_order": (
                "return lease.claim_order.index(value) if value in lease.claim_order else None",
                "return -lease.claim_order.index(value) if value in lease.claim_order else None",
            ),
            "lease.index": (
                "if rules.leased_index is not None and not is_in_index(rules, rules.leased_index, record):",
                "if False:",
            ),
            "lease.keeps_owner": ("if not (lease.keeps_owner and", "if not (False and"),
            "lease.token": [
                ("made[lease.token] = world.new_id()", 'made[lease.token] = "the same"'),
                ("made[lease.token] = rules.unset(lease.token)", "pass"),
            ],
            "lease.only": (
                "return frozenset((getattr(record, lease.only),)) if lease.only else frozenset()",
                "return frozenset()",
            ),
            "lease.holder.entity": (
                "if holder is None or getattr(holder, holder_status) not in lease.holder.states:\n"
                "        return 0",
                "if holder is None:\n        return wanted\n"
                "    if getattr(holder, holder_status) not in lease.holder.states:\n        return 0",
            ),
            "lease.holder.in": (" or getattr(holder, holder_status) not in lease.holder.states:", ":"),
            "lease.holder.capacity": (
                "return max(0, min(wanted, capacity - held))",
                "return max(0, min(wanted, capacity))",
            ),
            "lease.holder.offers": ("return own if asked is None else own & asked", "return asked"),
            "lease.holder.needs": (
                "return frozenset(getattr(record, lease.holder.needs))",
                "return frozenset()",
            ),
            "kept_in.indexes": [
                ("if rules.state(record) not in index.states:", "if False:"),
                ("if index.only_if is not None and", "if False and"),
                ("return index.only_unless is None or", "return True or"),
            ],
        },
    ),
    *list_mutations(
        f"{_FOLDER}/clocks.py",
        {
            "due.at": ("return at is not None and at < now", "return at is not None and at <= now"),
            "due.after": (
                "return to_microseconds(float(rules.values[due.after])) if due.after else 0",
                "return 0",
            ),
            "due.holder_in": [
                ("holder_state in (None, due.holder_in)", "holder_state == due.holder_in"),
                ("holder_state in (None, due.holder_in)", "holder_state is None"),
            ],
            "due.batch": ("return int(rules.values[due.batch]) if due.batch else BATCH", "return BATCH"),
            "due.values": (
                "return {name: text.format_map(_Fields(record)) for name, text in due.values.items()}",
                "return {}",
            ),
            "due.grace": ("return due.grace is None or", "return True or"),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/creation.py",
        {
            "initial": (
                "in rules.lifecycle.begins else rules.lifecycle.initial",
                "in rules.lifecycle.begins else 3 - min(rules.lifecycle.initial, 2)",
            ),
            "create.to": ("return state if state in rules.lifecycle.begins else", "return"),
            "create.stamps": ("for name in lifecycle.creation_stamps:", "for name in ():"),
            "create.copy": ("    if lifecycle.copy:", "    if False:"),
            "create.defaults": ("    if lifecycle.defaults:", "    if False:"),
            "create.ceiling": (
                "return (int(rules.values[ceiling.max]) or None) if ceiling is not None else None",
                "return (int(rules.values[ceiling.max]) + 1 or None) if ceiling is not None else None",
            ),
            "delete.from": (
                "return rules.state(record) == expected and expected in rules.lifecycle.deletable",
                "return bool(rules.state(record) == expected)",
            ),
            "kept_in.unique": (
                'if value is not None and value != ""}',
                "if False}",
            ),
            "kept_in.unique_for": (
                "return None if seconds is None else now + to_microseconds(float(rules.values[seconds]))",
                "return None if seconds is None else now + 2 * to_microseconds(float(rules.values[seconds]))",
            ),
            "kept_in.expires": (
                "return None if rules.retained_s is None else now + to_microseconds(rules.retained_s)",
                "return None if rules.retained_s is None else now + 2 * to_microseconds(rules.retained_s)",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/rules.py",
        {
            "overrides": (
                "own = overrides.values.get(getattr(record, overrides.by)) if overrides else None",
                "own: Any = None",
            ),
            "revision": ("(getattr(old, name) or 0) + 1})", "(getattr(old, name) or 0) + 2})"),
            "due.on_access": (
                "self.on_access = tuple(each for each in self.clocks if each.due.on_access)",
                "self.on_access: tuple[Clock, ...] = ()",
            ),
        },
    ),
]
"""What the engines are made of that read and write in one step: the oracle keeps the meaning as it was."""

SHARED: list[Mutation] = [
    *list_mutations(
        "runtime/stores/base.py",
        {
            "transitions.by": ("if call.caller not in change.actors:", "if False:"),
            "create.by": ("if call.caller not in self._lifecycle.creators:", "if False:"),
            "delete.by": ("if call.caller not in self._lifecycle.deleters:", "if False:"),
            "due.by": ("own = tuple(each for each in clocks if each.due.by == call.caller)", "own = clocks"),
            "logged": (
                "moved = events.TRANSITION if lifecycle.logged else None",
                "moved = events.TRANSITION",
            ),
        },
    ),
]
"""What all engines share beside the semantics."""

STEPS: list[Mutation] = [
    *list_mutations(
        "runtime/stores/steps/entities.py",
        {
            "key": ("if any(key in each for each in taken):", "if False:"),
            "delete.unless_holding": (
                "if held := self._held_count(key):",
                "if held := 0:",
            ),
        },
    ),
]
"""The steps of memory, SQLite and the JSON files."""

NOTES: list[Mutation] = [
    *list_mutations(
        "runtime/stores/base.py",
        {
            "transitions.reason": (
                "reason = given.get(edge.reason) if edge is not None and edge.reason else None",
                "reason = None",
            ),
        },
    ),
]
"""What the histories of memory, SQLite, S3 and the JSON files have beside an edge and its actor."""
