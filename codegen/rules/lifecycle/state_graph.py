"""Rules of lifecycle.yaml about the graph of states."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.lifecycle import Entity
from codegen.rules.lifecycle.references import find_status_enum
from codegen.rules.lookup import format_states
from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_FILES = ("lifecycle", "types")


@rule(
    "E208",
    "Two transitions lead from the same state to the same state.",
    wrong="dispatch: {from: QUEUED, to: RUNNING}\nstart: {from: QUEUED, to: RUNNING}",
    right="dispatch: {from: QUEUED, to: RUNNING, by: [vault, scheduler]}",
)
def check_edges_unique(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        first: dict[tuple[str, str], str] = {}
        for edge_name, edge in entity.transitions.items():
            if edge_name in entity.named_edges:
                continue  # It is driven by its name, never by its states.
            for source in edge.sources:
                if (other := first.setdefault((source, edge.to), edge_name)) != edge_name:
                    place = spec.place("lifecycle", "entities", name, "transitions", edge_name, key=True)
                    message = f"'{edge_name}' leads from {source} to {edge.to}, and so does '{other}'."
                    yield Finding(place, message, "Make one transition of them and name all actors in it.")


@rule(
    "E209",
    "A transition leads from a state to itself.",
    wrong="renew: {from: RUNNING, to: RUNNING}",
    right="# Leave it out: what keeps its state makes no transition.",
)
def check_self_loops(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for edge_name, edge in entity.transitions.items():
            if edge.to in edge.sources:
                place = spec.place("lifecycle", "entities", name, "transitions", edge_name, "to")
                message = f"'{edge_name}' leads from {edge.to} to itself."
                yield Finding(place, message, "What keeps its state makes no transition.")


@rule(
    "E210",
    "A terminal state has a way out.",
    wrong="terminal: [DONE]\ntransitions: {reopen: {from: DONE, to: QUEUED}}",
    right="terminal: []\ntransitions: {reopen: {from: DONE, to: QUEUED}}",
)
def check_terminal_states(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for edge_name, edge in entity.transitions.items():
            for state in (each for each in edge.sources if each in entity.terminal):
                place = spec.place("lifecycle", "entities", name, "transitions", edge_name, "from")
                message = f"'{edge_name}' leads out of {state}, which is terminal."
                yield Finding(place, message, "Remove the transition, or the state from 'terminal'.")


@rule(
    "E212",
    "A state cannot be reached from the initial one.",
    wrong="initial: QUEUED\ntransitions: {complete: {from: RUNNING, to: DONE}}",
    right=(
        "initial: QUEUED\n"
        "transitions: {dispatch: {from: QUEUED, to: RUNNING}, complete: {from: RUNNING, to: DONE}}"
    ),
    needs=_FILES,
    spreads=True,
)
def check_reachability(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        unreached = [
            state
            for state in _list_states(spec, entity)
            if not any(state in _find_reachable(entity, each) for each in entity.beginnings)
        ]
        while unreached:
            # A state that only unreachable states lead to is unreachable for the same reason.
            origins = [
                each
                for each in unreached
                if not any(each in _find_reachable(entity, other) for other in unreached if other != each)
            ]
            state = (origins or unreached)[0]
            unreached = [each for each in unreached if each not in _find_reachable(entity, state)]
            named = [edge for edge, row in entity.transitions.items() if state in row.sources]
            path: Path = ("transitions", named[0], "from") if named else ("transitions",)
            if state in entity.terminal:
                path = ("terminal", entity.terminal.index(state))
            place = spec.place("lifecycle", "entities", name, *path, key=path == ("transitions",))
            message = (
                f"No {name} ever gets to {state}: no way leads there from {format_states(entity.beginnings)}."
            )
            yield Finding(place, message, f"Add a transition with 'to: {state}', or remove the state.")


@rule(
    "E273",
    "An entity may begin in its initial state twice, or in a terminal one.",
    wrong="initial: QUEUED\nterminal: [DONE]\ncreate: {to: [QUEUED, DONE], …}",
    right="initial: QUEUED\nterminal: [DONE]\ncreate: {to: [PLANNED], …}",
)
def check_beginnings(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for index, state in enumerate(entity.create.to):
            place = spec.place("lifecycle", "entities", name, "create", "to", index)
            if state == entity.initial:
                message = f"A {name} begins in {state} anyway, where its creator names no other state."
                yield Finding(place, message, "Name further states only.")
            elif state in entity.terminal:
                message = (
                    f"A {name} may begin in {state}, which is terminal, so that nothing ever becomes of it."
                )
                yield Finding(place, message, "Name a state that it leaves.")


@rule(
    "E274",
    "A resting state is terminal, or something happens there that nobody has asked for.",
    wrong="resting: [COOLING]\ntransitions: {serve: {from: COOLING, to: WAITING, due: {at: again_at, …}}}",
    right="resting: [PUT_ASIDE]\ntransitions: {serve: {from: PUT_ASIDE, to: WAITING}}",
)
def check_resting_states(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        for index, state in enumerate(entity.resting):
            place = spec.place("lifecycle", "entities", name, "resting", index)
            if state in entity.terminal:
                message = f"{state} of a {name} is terminal, so that nothing more can be asked for."
                yield Finding(place, message, "Remove it from 'resting', or from 'terminal'.")
            elif why := _find_motion(entity, state):
                yield Finding(
                    place, f"A {name} does not rest in {state}: {why}.", "Remove it from 'resting'."
                )


def _find_motion(entity: Entity, state: str) -> str:
    """Find what leads an entity out of a state without having been asked for; empty if nothing does."""
    leaving = {name: edge for name, edge in entity.transitions.items() if state in edge.sources}
    for name, edge in leaving.items():
        if edge.dues:
            return f"the clock drives '{name}'"
        if entity.lease and edge.to == entity.lease.state:
            return f"'{name}' takes the lease there"
    return "a lease ends" if entity.lease and state == entity.lease.state else ""


@rule(
    "E211",
    "A state that is not terminal has no way out.",
    wrong="terminal: [DONE]\ntransitions: {fail: {from: RUNNING, to: FAILED}}",
    right="terminal: [DONE, FAILED]\ntransitions: {fail: {from: RUNNING, to: FAILED}}",
    needs=_FILES,
)
def check_dead_ends(spec: Spec) -> Iterator[Finding]:
    for name, entity in spec.lifecycle.entities.items():
        with_exit = {state for edge in entity.transitions.values() for state in edge.sources}
        with_exit |= {*entity.delete.from_} if entity.delete else set()
        for state in _list_states(spec, entity):
            if state not in with_exit and state not in entity.terminal:
                place = spec.place("lifecycle", "entities", name, "terminal")
                message = f"A {name} in {state} stays there for ever, and {state} is not terminal."
                yield Finding(place, message, "Add it to 'terminal', or a transition that leads out of it.")


def _list_states(spec: Spec, entity: Entity) -> list[str]:
    """List the states of an entity: the values of its enum without the unspecified one."""
    enum = spec.enums.get(find_status_enum(spec, entity))
    return [name for name, value in enum.values.items() if value.number] if enum else []


def _find_reachable(entity: Entity, start: str) -> set[str]:
    found = {start}
    grows = True
    while grows:
        more = {edge.to for edge in entity.transitions.values() if found & {*edge.sources}} - found
        grows = bool(more)
        found |= more
    return found
