"""Mutations of the Lua of the engine in Redis."""

from __future__ import annotations

from scripts.mutations.mutation import Mutation, list_mutations

_FOLDER = "runtime/stores/redis"

REDIS: list[Mutation] = [
    *list_mutations(
        f"{_FOLDER}/lua/semantics.lua",
        {
            "status": ("made[L.status] = edge.target", "made[L.status] = edge.source"),
            "transitions.to": ("made[L.status] = edge.target", "made[L.status] = L.initial"),
            "transitions.from": (
                "return change.sources[record[L.status]] and M.fits(change, record)",
                "return M.fits(change, record)",
            ),
            "transitions.when": ("if M.value(record, flag) ~= 'true' then return false end", ""),
            "transitions.where": (
                "return not change.where or M.equals(record, change.where)",
                "return true",
            ),
            "transitions.stamps": ("  if edge.stamps then", "  if false then"),
            "transitions.sets": ("  if edge.sets then", "  if false then"),
            "transitions.copy": ("  if edge.copy then", "  if false then"),
            "transitions.clear": ("  if edge.clear then", "  if false then"),
            "transitions.multiply": [
                ("  if edge.multiply then", "  if false then"),
                (
                    "math.ceil((M.value(record, name) or 0) * growth.times)",
                    "math.floor((M.value(record, name) or 0) * growth.times)",
                ),
                ("math.min(grown, M.number(record, growth.max))", "grown"),
            ],
            "transitions.increment": (
                "M.text((M.value(record, edge.increment) or 0) + 1)",
                "M.text((M.value(record, edge.increment) or 0) + 2)",
            ),
            "updates.stamps": ("ipairs(update.stamps or {})", "ipairs({})"),
            "updates.sets": ("pairs(update.sets or {})", "pairs({})"),
            "updates.clear": ("ipairs(update.clear or {})", "ipairs({})"),
            "from_request.from": ("local found = given[take.source]", "local found = given[name]"),
            "from_request.default": (
                "found == '' then found = take.default end",
                "found == '' then found = nil end",
            ),
            "from_request.keep_first": ("if take.keep_first and not", "if false and not"),
            "backoff.until": (
                "if edge.backoff then made[edge.backoff.until_] = M.wait_until(edge, record, moment) end",
                "",
            ),
            "backoff.count": (
                "if edge.increment ~= backoff.count then",
                "if edge.increment == backoff.count then",
            ),
            "backoff.base": (
                "math.min(M.seconds_of(record, backoff.base) * growth, most)",
                "math.min(2 * M.seconds_of(record, backoff.base) * growth, most)",
            ),
            "backoff.max": (
                "math.min(M.seconds_of(record, backoff.base) * growth, most)",
                "M.seconds_of(record, backoff.base) * growth",
            ),
            "backoff.times": ("(backoff.times and M.number(record, backoff.times) or 2)", "2"),
            "backoff.kind": [
                ("if backoff.kind == 'constant' or", "if"),
                ("if backoff.kind == 'linear' then return failures + 1 end", ""),
            ],
            "backoff.jitter": ("if jitter ~= 0 then", "if false then"),
            "dead_letter.less": (" - (ending.less and M.number(record, ending.less) or 0)", ""),
            "dead_letter.limit": [
                ("return failures > limit", "return failures >= limit"),
                ("return failures >= limit", "return failures > limit"),
            ],
            "lease.state": (
                "if record[L.status] ~= L.lease.state then return 'lost' end",
                "",
            ),
            "lease.owner": [
                ("made[L.lease.owner] = owner", "made[L.lease.owner] = 'x' .. owner"),
                ("if owner ~= '' and M.value(record, L.lease.owner) ~= owner then return 'lost' end", ""),
            ],
            "lease.expires": [
                ("ends ~= nil and ends <= now", "ends ~= nil and ends < now"),
                ("if owner ~= '' and M.is_expired(record) then return 'lost' end", ""),
            ],
            "lease.renewed": (
                "made[L.lease.renewed] = M.time_value(L.lease.renewed, moment)",
                "",
            ),
            "lease.fence": [
                (
                    "M.text((M.value(record, L.lease.fence) or 0) + 1)",
                    "M.text(M.value(record, L.lease.fence) or 1)",
                ),
                (
                    "if fence ~= 0 and tonumber(M.value(record, L.lease.fence)) ~= fence then return "
                    "'stale' end",
                    "",
                ),
            ],
            "lease.seconds": (
                "return moment + M.microseconds(seconds",
                "return moment + 2 * M.microseconds(seconds",
            ),
            "lease.keeps_owner": ("if not (L.lease.keeps_owner and", "if not (false and"),
            "lease.token": [
                ("made[L.lease.token] = M.next_token()", "made[L.lease.token] = 'the same'"),
                ("made[L.lease.token] = false", ""),
            ],
            "overrides": (
                "if own and own[path.variable] then return own[path.variable] end",
                "",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua/entities.lua",
        {
            "dead_letter.transition": [
                ("is_over and M.taken_from(last, edge.source) or edge", "edge"),
                ("M.step(entity, M.taken_from(last, edge.target), given, owner, taken)", ""),
            ],
            "dead_letter.count": ("change.increment ~= ending.count_name)", "true)"),
            "transitions.reason": ("edge.reason and given[edge.reason] or ''", "''"),
            "revision": (
                "M.text((M.value(entity.record, L.revision) or 0) + 1)",
                "M.text((M.value(entity.record, L.revision) or 0) + 2)",
            ),
            "kept_in.unique": ("return (until_ == '' or tonumber(until_) > now) and key", "return false"),
            "kept_in.unique_for": (
                "local length = seconds and M.microseconds(L.values[seconds])",
                "local length = seconds and 2 * M.microseconds(L.values[seconds])",
            ),
            "kept_in.expires": (
                "local length = M.microseconds(L.values[L.retained_s])\n    if L.ending",
                "local length = 2 * M.microseconds(L.values[L.retained_s])\n    if L.ending",
            ),
            "retention": (
                "while redis.call('ZCARD', L.ended) > L.most_terminal do",
                "while redis.call('ZCARD', L.ended) > L.most_terminal + 1 do",
            ),
            "terminal": (
                "if not L.terminal[entity.record[L.status]] then return end",
                "if true then return end",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua/creation.lua",
        {
            "key": (
                "elseif is_there or keys[key] then",
                "elseif false then",
            ),
            "initial": (
                "M.set_own(entity, L.status, L.initial)",
                "M.set_own(entity, L.status, L.has_lease and L.lease.state or L.initial)",
            ),
            "create.stamps": ("for _, name in ipairs(L.creation_stamps) do", "for _, name in ipairs({}) do"),
            "create.to": ("if not (L.has_begins and", "if not (false and"),
            "create.ceiling": ("and depth >= L.ceiling_most then", "and depth > L.ceiling_most then"),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua/changes.lua",
        {
            "lease.only": ("if not offers[need] then return false end", ""),
            "lease.holder.needs": (
                "if not offers[need] then return false end",
                "if offers[need] then return false end",
            ),
            "lease.holder.entity": (
                "if not state or not L.holder.states[state] then return 0, nil end",
                "if not state then return wanted, '[]' end\n  if not L.holder.states[state] then "
                "return 0, nil end",
            ),
            "lease.holder.in": (
                "if not state or not L.holder.states[state] then return 0, nil end",
                "if not state then return 0, nil end",
            ),
            "lease.holder.capacity": (
                "math.min(wanted, (capacity or 0) - held)",
                "math.min(wanted, capacity or 0)",
            ),
            "lease.holder.offers": (
                "if not asked or own[each] then found[each] = true end",
                "found[each] = true",
            ),
            "lease.claim_order": (
                "for _, rank in ipairs(L.ranks) do\n    local offset = 0",
                "for n = #L.ranks, 1, -1 do\n    local rank, offset = L.ranks[n], 0",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua/due.lua",
        {
            "due.at": (
                "return at ~= nil and at + clock.delay < now",
                "return at ~= nil and at + clock.delay <= now",
            ),
            "due.after": (
                "return at ~= nil and at + clock.delay < now",
                "return at ~= nil and at < now",
            ),
            "due.holder_in": [
                ("return state == nil or state == clock.holder_in", "return state == clock.holder_in"),
                ("return state == nil or state == clock.holder_in", "return state == nil"),
            ],
            "due.values": (
                "for name, pattern in pairs(clock.values) do",
                "for name, pattern in pairs({}) do",
            ),
            "due.on_access": (
                "for _, number in ipairs(args.access or {}) do",
                "for _, number in ipairs({}) do",
            ),
            "delete.unless_holding": ("return L.is_holder and redis.call(", "return false and redis.call("),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua/maintenance.lua",
        {
            "due.batch": (
                "M.run_clock(M.make_clock(each[1]), each[2])",
                "M.run_clock(M.make_clock(each[1]), 500)",
            ),
            "delete.from": (
                "if state ~= args.expected or not L.deletable[state] then",
                "if state ~= args.expected then",
            ),
            "lease.renewed": (
                "made[L.lease.renewed] = M.time_value(L.lease.renewed, M.moment_after(record, now))",
                "",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua_indexes.py",
        {
            "lease.oldest_by": (
                "age = self._time(lease.oldest_by)",
                "age = f\"'-' .. {self._time(lease.oldest_by)}\"",
            ),
            "lease.index": ("if rules.leased_index is not None and (", "if False and ("),
            "kept_in.indexes": [
                ("if not index.states >= set(self._lifecycle.states):", "if False:"),
                ("found += [self._is_set(index.only_if)] if index.only_if else []", ""),
                ('found += [f"not ({self._is_set(index.only_unless)})"] if index.only_unless else []', ""),
            ],
            "listed_by": ("score = self._time(listed_by) if listed_by else \"'0'\"", "score = \"'0'\""),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/lua_table.py",
        {
            "updates.in": (
                "self._set_of_states(sources(change))",
                "self._set_of_states("
                "self._lifecycle.states if isinstance(change, Update) else sources(change))",
            ),
        },
    ),
    *list_mutations(
        f"{_FOLDER}/changes.py",
        {"due.grace": ("if is_in_force(self._rules, clock.due, now, self._opened)", "if True")},
    ),
]
