"""`spec/accepted/<system>.json`: the last accepted form of a spec and the records that led to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from codegen.diagnostics import Diagnostic, Place, SpecError
from codegen.language.moved_storage import move_storage
from codegen.language.renamed_keys import rename_keys
from codegen.review.form import decode_form, encode_form
from codegen.source.spec import Spec

FOLDER = "spec/accepted"


@dataclass(frozen=True)
class AcceptedForm:
    """The accepted spec and records of a system; without a spec it was never there, or was removed."""

    spec: Spec | None = None
    records: tuple[str, ...] = ()
    renamed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Keys with old names in it, as `old -> new`, by file. The spec has the new ones."""


def list_accepted_systems(root: Path) -> list[str]:
    """List the systems that have an accepted form."""
    return sorted(path.stem for path in (root / FOLDER).glob("*.json"))


def read_accepted(root: Path, system: str) -> AcceptedForm:
    """Read the accepted form of a system; raises SpecError if its file is not valid."""
    path, file = _get_path(root, system), f"{FOLDER}/{system}.json"
    if not path.exists():
        return AcceptedForm()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        records = tuple(map(str, data.pop("records")))
        renamed = {name: words for name, part in data.items() if (words := rename_keys(name, part))}
        for name, words in move_storage(data).items():
            renamed[name] = [*renamed.get(name, ()), *words]
        return AcceptedForm(decode_form(data, f"spec/{system}") if data else None, records, renamed)
    except json.JSONDecodeError as error:
        place, problem = Place(file, error.lineno, error.colno), error.msg
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, problem = Place(file, 1, 1), f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        place, problem = Place(file, 1, 1), f"{type(error).__name__} {error}"
    hint = "Only `python -m codegen review --accept` writes this file; take it from version control."
    raise SpecError([Diagnostic(place, "E909", f"This is no accepted form: {problem}.", hint)])


def write_accepted(root: Path, system: str, spec: Spec | None, records: Iterable[str]) -> bool:
    """Replace the accepted form atomically; False if it is the same already."""
    path, text = _get_path(root, system), format_accepted(spec, records)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    return True


def format_accepted(spec: Spec | None, records: Iterable[str]) -> str:
    """Format an accepted form as JSON text."""
    form = encode_form(spec) if spec else {}
    return json.dumps({**form, "records": [*records]}, indent=2, ensure_ascii=False) + "\n"


def find_lost_records(system: str, accepted: AcceptedForm, names: Iterable[str]) -> Iterator[Diagnostic]:
    """Find the records that were accepted and are missing now."""
    known = set(names)
    for record in accepted.records:
        if record not in known:
            message = f"The accepted form of {system} rests on {record}, which is not in spec/changes."
            hint = "Records are kept for good; take it from version control."
            yield Diagnostic(Place(f"{FOLDER}/{system}.json", 1, 1), "E910", message, hint)


def _get_path(root: Path, system: str) -> Path:
    return root / FOLDER / f"{system}.json"
