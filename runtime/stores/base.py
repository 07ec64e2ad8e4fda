"""What all engines share: who may do what, the audit of transitions, and the conditions of a refusal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from inspect import Parameter, signature
from typing import Any, Generic

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import Event, System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.contract import CREATION, DELETION, NOTHING, Record
from runtime.stores.semantics.clocks import clocks_of
from runtime.stores.semantics.creation import first_state
from runtime.stores.semantics.edges import edge_between, is_of_clock, needs_proof, only_ends_failures
from runtime.stores.semantics.leases import STALE
from runtime.stores.semantics.rules import Change, Clock, prepare_rules
from runtime.stores.store import GuardBreach
from runtime.world import World

_Line = tuple[Event | None, str, dict[str, str]]


class StoreBase(Generic[Record]):
    """The entities of one kind, as far as no engine matters."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any] = NOTHING,
    ) -> None:
        self._roles = system.roles
        self._lifecycle = lifecycle
        self._entity, self._key_field = lifecycle.entity, lifecycle.key
        self._rules = prepare_rules(lifecycle, record, values)
        self._guarded = self._rules.guarded
        self._world = world
        self._metrics = metrics
        self._proofs: dict[tuple[str, str], bool] = {}
        """By change and actor, where the actor may make it: whether it needs the proof of a lease."""
        self._lines = dict(_line_fields(lifecycle))

    def _now(self) -> int:
        """Return this moment by the clock of the world."""
        return self._world.now_ms() * 1000

    def edge_between(self, source: int, target: int, call: Call) -> Transition:
        edge = edge_between(self._rules, source, target, call.caller)
        if edge is None:
            states = self._lifecycle.states
            ends = {"from_state": source, "to_state": target}
            named = {name: states.get(state, str(state)) for name, state in ends.items()}
            raise self._condition("illegal_transition", entity=self._entity, **named)
        self._require_driver(edge, call)
        return edge

    # Authorisation.

    def _require_creator(self, call: Call) -> None:
        if call.caller not in self._lifecycle.creators:
            raise self._denied(call, f"only {_join(self._lifecycle.creators)} may create a {self._entity}")

    def _require_deleter(self, call: Call) -> None:
        if call.caller not in self._lifecycle.deleters:
            allowed = _join(self._lifecycle.deleters) or "nobody"
            raise self._denied(call, f"only {allowed} may delete a {self._entity}")

    def _require_driver(self, change: Change, call: Call) -> None:
        if call.caller not in change.actors:
            allowed = _join(change.actors, " or ")
            raise self._denied(call, f"only {allowed} may {change.name} a {self._entity}")

    def _admit(self, name: str, call: Call, *, has_proof: bool) -> Change:
        """Return a change that the caller may make; raises unless it may, and has the proof it needs."""
        change = self._rules.changes.get(name)
        if change is None:
            raise GuardBreach(f"a {self._entity} has no transition {name}")
        proof = self._proofs.get((name, call.caller))
        if proof is None:
            self._require_driver(change, call)
            proof = needs_proof(self._rules, change, call.caller)
            if not proof and is_of_clock(self._rules, change, call.caller):
                raise GuardBreach(f"{name} of a {self._entity} is driven by the clock")
            if only_ends_failures(self._rules, change, call.caller):
                raise GuardBreach(f"{call.caller} takes {name} of a {self._entity} only with a failure")
            self._proofs[name, call.caller] = proof
        if proof and not has_proof:
            raise GuardBreach(f"{name} of a {self._entity} needs the proof of its lease")
        return change

    def _admit_first(self, then: Iterable[str], call: Call) -> list[Transition]:
        """Return the edges that a creator takes in the step of the creation."""
        found = [self._admit(name, call, has_proof=False) for name in then]
        edges = [each for each in found if isinstance(each, Transition)]
        if len(edges) < len(found):
            raise GuardBreach(f"a {self._entity} begins with edges, and with no other change")
        return edges

    def _admit_clock(self, name: str, call: Call) -> tuple[Clock, ...]:
        """Return the clocks of a change that the caller drives."""
        clocks = clocks_of(self._rules, name, DELETION)
        if not clocks:
            raise GuardBreach(f"{name} of a {self._entity} is not driven by the clock")
        own = tuple(each for each in clocks if each.due.by == call.caller)
        if not own:
            drivers = _join({each.due.by for each in clocks}, " or ")
            raise self._denied(call, f"only {drivers} does so by the clock")
        return own

    def _admit_claim(self, call: Call) -> Transition:
        """Return the edge by which a lease is claimed."""
        edge = self._rules.entering
        if edge is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        self._require_driver(edge, call)
        return edge

    def _require_unguarded(self, changes: Iterable[str]) -> None:
        changes = {*changes}
        if breached := sorted(self._guarded & changes):
            raise GuardBreach(f"{', '.join(breached)} of a {self._entity} changes only with its state")
        self._require_fields(changes)

    def _require_fields(self, names: Iterable[str]) -> None:
        if unknown := sorted({*names} - {*self._rules.names}):
            raise GuardBreach(f"a {self._entity} has no {', '.join(unknown)}")

    # Conditions, by their roles.

    def _condition(self, role: str, **fields: object) -> Exception:
        make: Callable[..., Condition] = self._roles[role]
        known = signature(make).parameters
        if not any(each.kind is Parameter.VAR_KEYWORD for each in known.values()):
            # The message of a condition need not have everything that is known.
            fields = {name: value for name, value in fields.items() if name in known}
        return make(**fields)

    def _denied(self, call: Call, problem: str) -> Exception:
        return self._condition("permission_denied", caller=call.caller, method=call.method, problem=problem)

    def _lease_lost(self, key: str, owner: str, problem: str) -> Exception:
        if problem == STALE and "lease_stale" in self._roles:
            return self._condition("lease_stale", key=key)
        return self._condition("lease_lost", holder=owner or "its owner", key=key)

    # Audit.

    def _lease_note(self, change: Change, old: Any, new: Any) -> dict[str, Any]:
        """Return the lease that a change takes or leaves, for the log."""
        lease = self._rules.lease
        if lease is None or not isinstance(change, Transition):
            return {}
        if lease.state == change.target:
            return {lease.owner: getattr(new, lease.owner), lease.fence: getattr(new, lease.fence)}
        if lease.state == change.source:
            return {lease.owner: getattr(old, lease.owner), lease.fence: getattr(old, lease.fence)}
        return {}

    def _first_note(self, record: Any) -> dict[str, Any]:
        """Return what the log has of a new entity: the state in which it begins, where there are several."""
        if not self._lifecycle.begins:
            return {}
        return {"to_status": self._lifecycle.states[first_state(self._rules, record)]}

    def _history_note(
        self, edge: Transition | None, old: Any, new: Any, call: Call | None, given: Mapping[str, Any]
    ) -> tuple[int, str, str, str] | None:
        """Return fence, owner, reason and trace for an entry of the history; None where it has none."""
        rules, lease = self._rules, self._rules.lease
        trace: str | None = getattr(new, rules.trace) if rules.trace else None
        if not trace and call is not None and call.trace:
            trace = call.trace_id
        reason = given.get(edge.reason) if edge is not None and edge.reason else None
        if lease is None and not trace and not reason:
            return None
        fence = owner = None
        if lease is not None:
            fence = getattr(new, lease.fence)
            owner = getattr(new, lease.owner) or (getattr(old, lease.owner) if old is not None else None)
        return fence or 0, owner or "", reason or "", trace or ""

    def _audit(
        self,
        change: Change | str,
        key: str,
        call: Call | None,
        noted: Mapping[str, Any] = NOTHING,
        *,
        actor: str = "",
    ) -> None:
        """Count a change and log it. Payloads and errors of entities are never logged unless noted."""
        name = change if isinstance(change, str) else change.name
        self._metrics.count_transition(self._entity, name, actor or (call.caller if call else ""))
        event, message, always = self._lines[name]
        if event is None or call is None or not call.log.wants(event):
            return
        line = call.begin_line(event, message)
        line.update(always)
        line[self._key_field] = key
        if isinstance(change, Transition) and change.others:
            line["from_status"] = self._lifecycle.states[change.source]
        if noted:
            for field, value in noted.items():
                if value:
                    line[field] = value
        if actor:
            line["actor"] = actor
        call.log.end_line(event, line)

    def _audit_ignored(self, change: Change, key: str, call: Call, current: int) -> None:
        """Log a transition that came too late: the entity is in another terminal state already."""
        lifecycle = self._lifecycle
        if not isinstance(change, Transition) or current not in lifecycle.terminal:
            return
        if change.target in lifecycle.terminal and change.target != current:
            call.tell(
                events.TERMINAL_WRITE_IGNORED,
                f"{self._entity} is {lifecycle.states[current]} already",
                **{
                    lifecycle.key: key,
                    "expected_status": _join({lifecycle.states[each] for each in change.sources}, " or "),
                    "current_status": lifecycle.states[current],
                },
            )


def _line_fields(lifecycle: Lifecycle) -> Iterator[tuple[str, _Line]]:
    """By change: the event and the message of its log line, and the fields that each such line has.

    An update is logged where the clock drives it; the others are too many.
    """
    states, entity = lifecycle.states, lifecycle.entity
    moved = events.TRANSITION if lifecycle.logged else None
    shifted = events.SHIFT if lifecycle.logged else None
    for edge in lifecycle.transitions.values():
        # Where there are several sources, each line has its own.
        ends = {} if edge.others else {"from_status": states[edge.source]}
        ends["to_status"] = states[edge.target]
        yield edge.name, _line(moved, entity, edge.name, ends)
    for update in lifecycle.updates.values():
        yield update.name, _line(shifted if update.dues else None, entity, update.name, {})
    first = {} if lifecycle.begins else {"to_status": states[lifecycle.initial]}
    yield CREATION, _line(moved, entity, CREATION, first)
    yield DELETION, _line(moved, entity, DELETION, {})


def _line(event: Event | None, entity: str, name: str, ends: dict[str, str]) -> _Line:
    return event, f"{entity} {name}", {"entity": entity, "transition": name, **ends}


def _join(names: Collection[str], by: str = ", ") -> str:
    return by.join(sorted(names))
