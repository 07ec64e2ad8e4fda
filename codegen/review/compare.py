"""All differences of two specs: what the kinds find, what is worded anew, and whatever nothing explains."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from codegen.review.difference import Difference, Kind, Verdict
from codegen.review.form import Path, Text, leaves, read, tree, write
from codegen.review.kinds import KINDS
from codegen.source.spec import Spec

FROZEN = {
    "proto.added": "the number of proto files",
    "proto.removed": "the number of proto files",
    "service.added": "the set of methods",
    "service.removed": "the set of methods",
    "method.added": "the set of methods",
    "method.removed": "the set of methods",
    "entity.added": "the states",
    "entity.removed": "the states",
    "state.added": "the states",
    "state.removed": "the states",
    "state.renamed": "the states",
    "deployment.added": "the designs that are compared",
    "deployment.removed": "the designs that are compared",
    "deployment.transport": "how components talk",
    "node.added": "the number of nodes",
    "node.removed": "the number of nodes",
    "node.replicas": "the number of nodes",
    "slots.total": "the total of worker slots",
    "freeze.lifted": "the freeze itself",
    "freeze.since": "the freeze itself",
    "decision.added": "the freeze itself",
    "decision.removed": "the freeze itself",
    "gate.added": "the freeze itself",
    "gate.removed": "the freeze itself",
    "out_of_scope.added": "the freeze itself",
    "out_of_scope.removed": "the freeze itself",
}
"""Kinds that touch a frozen decision, and which one. It counts only while the accepted form is frozen."""


class Stored(NamedTuple):
    """A spec as its stored form has it, so that the order of names plays no part, and each value of it."""

    spec: Spec
    leaves: dict[Path, Any]


def stored(spec: Spec) -> Stored:
    """The side of a comparison that a spec is."""
    found = read(write(spec), spec.folder)
    return Stored(found, leaves(tree(found)))


def compare(old: Spec, new: Spec) -> list[Difference]:
    """Every difference, the gravest first; equal specs have none."""
    return differences(stored(old), stored(new))


def differences(old: Stored, new: Stored, kinds: Sequence[Kind] = KINDS) -> list[Difference]:
    """The same for two sides, of which one may stay while the other changes."""
    found = [each for kind in kinds for each in kind.find(old.spec, new.spec)]
    if old.spec.system.frozen:
        found = [replace(each, verdict=Verdict.FROZEN) if each.kind in FROZEN else each for each in found]
    rest = _unexplained(_changes(old.leaves, new.leaves), found)
    found += [*_wording(rest), *_other(rest)]
    order = list(Verdict)
    return sorted(found, key=lambda each: (order.index(each.verdict), not each.needs_record, each.id))


Changes = dict[Path, tuple[Any, Any]]
_ABSENT = object()


def _changes(old: dict[Path, Any], new: dict[Path, Any]) -> Changes:
    """Every path whose value differs. A part that was empty and has content now is told by its content."""
    inner = {path[:end] for form in (old, new) for path in form for end in range(len(path))}
    found: Changes = {}
    for path in sorted({*old, *new}):
        was, now = old.get(path, _ABSENT), new.get(path, _ABSENT)
        if path not in inner and not _same(was, now):
            found[path] = (was, now)
    return found


def _same(was: Any, now: Any) -> bool:
    # As text, because to Python 1 and True are equal; most are texts already.
    return was == now if isinstance(was, str) and isinstance(now, str) else _text(was) == _text(now)


def _text(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value)


def _unexplained(changes: Changes, found: Iterable[Difference]) -> Changes:
    explained = {path for each in found for path in each.paths}
    return {
        path: values
        for path, values in changes.items()
        if not any(path[:end] in explained for end in range(1, len(path) + 1))
    }


def _wording(rest: Changes) -> Iterator[Difference]:
    """One difference for each file in which texts changed and nothing else did at their place."""
    files: dict[str, list[Path]] = {}
    for path, values in rest.items():
        if _is_wording(values):
            files.setdefault(path[0], []).append(path)
    for file, paths in files.items():
        count = f"{len(paths)} text{'s' if len(paths) > 1 else ''}"
        yield Difference(
            f"wording {file}", f"{count} of {file}.yaml worded anew", Verdict.COMPATIBLE, tuple(paths)
        )


def _other(rest: Changes) -> Iterator[Difference]:
    """What no kind knows of, so that nothing goes unseen when the language has a new word."""
    for path, (was, now) in rest.items():
        if not _is_wording((was, now)):
            name = ".".join(path)
            text = f"{name} {_text(was) or 'none'} -> {_text(now) or 'none'}"
            yield Difference(f"other {name}", text, Verdict.BEHAVIOUR, (path,))


def _is_wording(values: tuple[Any, Any]) -> bool:
    return all(isinstance(value, Text) or value is _ABSENT for value in values)
