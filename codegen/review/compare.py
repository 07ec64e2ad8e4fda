"""Semantic difference of two specs: changes that a kind finds, changes of wording, and all others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from codegen.review.difference import Kind, SpecDifference, Verdict
from codegen.review.form import Path, Prose, decode_form, encode_form, flatten, spec_to_tree
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


class StoredForm(NamedTuple):
    """A spec in its stored form, in which the order of names does not count, and each value of it by path."""

    spec: Spec
    values: dict[Path, Any]


def normalize(spec: Spec) -> StoredForm:
    """Normalize a spec for a comparison."""
    found = decode_form(encode_form(spec), spec.folder)
    return StoredForm(found, flatten(spec_to_tree(found)))


def compare(old: Spec, new: Spec) -> list[SpecDifference]:
    """List all differences, the gravest first; equal specs have none."""
    return find_differences(normalize(old), normalize(new))


def find_differences(old: StoredForm, new: StoredForm, kinds: Sequence[Kind] = KINDS) -> list[SpecDifference]:
    """List all differences of two normalized specs, so that one can be compared with several."""
    found = [each for kind in kinds for each in kind.find(old.spec, new.spec)]
    if old.spec.system.frozen:
        found = [replace(each, verdict=Verdict.FROZEN) if each.kind in FROZEN else each for each in found]
    rest = _find_unexplained(_find_changes(old.values, new.values), found)
    found += [*_iter_wording_differences(rest), *_iter_other_differences(rest)]
    order = list(Verdict)
    return sorted(found, key=lambda each: (order.index(each.verdict), not each.needs_record, each.id))


Changes = dict[Path, tuple[Any, Any]]
_ABSENT = object()


def _find_changes(old: dict[Path, Any], new: dict[Path, Any]) -> Changes:
    """Find the paths whose values differ. A part that was empty is represented by its new content."""
    inner = {path[:end] for form in (old, new) for path in form for end in range(len(path))}
    found: Changes = {}
    for path in sorted({*old, *new}):
        was, now = old.get(path, _ABSENT), new.get(path, _ABSENT)
        if path not in inner and not _is_same(was, now):
            found[path] = (was, now)
    return found


def _is_same(was: Any, now: Any) -> bool:
    # As text, because to Python 1 and True are equal; most are texts already.
    return (
        was == now
        if isinstance(was, str) and isinstance(now, str)
        else _value_to_text(was) == _value_to_text(now)
    )


def _value_to_text(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value)


def _find_unexplained(changes: Changes, found: Iterable[SpecDifference]) -> Changes:
    explained = {path for each in found for path in each.paths}
    return {
        path: values
        for path, values in changes.items()
        if not any(path[:end] in explained for end in range(1, len(path) + 1))
    }


def _iter_wording_differences(rest: Changes) -> Iterator[SpecDifference]:
    """Iterate over the files with changed prose: one difference for each."""
    files: dict[str, list[Path]] = {}
    for path, values in rest.items():
        if _is_wording(values):
            files.setdefault(path[0], []).append(path)
    for file, paths in files.items():
        count = f"{len(paths)} text{'s' if len(paths) > 1 else ''}"
        yield SpecDifference(
            f"wording {file}", f"{count} of {file}.yaml worded anew", Verdict.COMPATIBLE, tuple(paths)
        )


def _iter_other_differences(rest: Changes) -> Iterator[SpecDifference]:
    """Iterate over the changes that no kind covers, so that a new keyword of the language is never missed."""
    for path, (was, now) in rest.items():
        if not _is_wording((was, now)):
            name = ".".join(path)
            text = f"{name} {_value_to_text(was) or 'none'} -> {_value_to_text(now) or 'none'}"
            yield SpecDifference(f"other {name}", text, Verdict.BEHAVIOUR, (path,))


def _is_wording(values: tuple[Any, Any]) -> bool:
    return all(isinstance(value, Prose) or value is _ABSENT for value in values)
