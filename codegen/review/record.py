"""Change records: their schema, reading their files, and checks of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from codegen.diagnostics import Diagnostic, Place, suggest
from codegen.language.base import Doc, LowerName, Part
from codegen.source.schema_validation import find_duplicates, validate
from codegen.source.yaml_reader import Source, parse

FOLDER = "spec/changes"
HEADER = "# yaml-language-server: $schema=../schema/change.schema.json"
_NAME = re.compile(r"([0-9]{4})-[a-z0-9]+(?:-[a-z0-9]+)*")

Resolved = Annotated[str, StringConstraints(pattern=r"^[A-Z]+-[A-Z]?[0-9]+$")]


class Blocker(Part):
    """Why a frozen design had to change all the same."""

    description: Doc = Field(description="What stood in the way.")
    why_design_fails: Doc = Field(description="Why the design as it was could not work.")
    scope: Doc = Field(description="Exactly what changes, and what does not.")
    impact_on_task: Doc = Field(description="What it means for the work at hand.")


class ChangeRecord(Part):
    """One accepted change of a spec."""

    system: LowerName
    title: Doc
    resolves: tuple[Resolved, ...] = Field(default=(), description="Open questions that this change decides.")
    what: Doc = Field(description="What changed.")
    why: Doc = Field(description="Why it changed.")
    impact: Doc = Field(description="What is expected of it, in the implementation and in its evaluation.")
    blocker: Blocker | None = Field(default=None, description="Required while the design is frozen.")
    covers: tuple[Doc, ...] = Field(
        default=(),
        description="Ids of the differences that it covers, as `python -m codegen review` lists them.",
    )


@dataclass(frozen=True)
class RecordFile:
    """A change record with its file."""

    name: str
    number: int
    source: Source
    body: ChangeRecord

    def place(self, *path: str | int) -> Place:
        return self.source.place(path)


def record_schema() -> dict[str, Any]:
    """Build the JSON Schema of a change record, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **ChangeRecord.model_json_schema()}


def read_records(root: Path) -> tuple[list[RecordFile], list[Diagnostic]]:
    """Read all change records, sorted by number, and report the invalid ones."""
    records: list[RecordFile] = []
    complaints: list[Diagnostic] = []
    for path in sorted((root / FOLDER).glob("*.y*ml")):
        record, found = _read_record(path, f"{FOLDER}/{path.name}")
        complaints += found
        if record is not None and not found:
            records.append(record)
    return records, [*complaints, *_check_numbers_unique(records), *_check_resolved_once(records)]


def format_next_number(records: Iterable[RecordFile]) -> str:
    """Format the number of the next record."""
    return f"{max((each.number for each in records), default=0) + 1:04}"


def find_unknown_systems(records: Iterable[RecordFile], systems: Iterable[str]) -> Iterator[Diagnostic]:
    """Find records about systems that do not exist."""
    known = [*systems]
    for record in records:
        if record.body.system not in known:
            message = f"There is no system '{record.body.system}'."
            yield Diagnostic(record.place("system"), "E904", message, suggest(record.body.system, known))


def _read_record(path: Path, file: str) -> tuple[RecordFile | None, list[Diagnostic]]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        message = f"The file is not UTF-8: {error.reason} at byte {error.start}."
        return None, [Diagnostic(Place(file, 1, 1), "E001", message, "Save it as UTF-8.")]
    source, complaints = parse(file, text)
    complaints += [*_check_name(path, file), *_check_header(source)]
    if source.data is None and complaints:
        return None, complaints
    complaints += find_duplicates(source)
    body, found = validate(ChangeRecord, source, set())
    complaints += found
    match = _NAME.fullmatch(path.stem)
    if isinstance(body, ChangeRecord) and match:
        return RecordFile(path.stem, int(match[1]), source, body), complaints
    return None, complaints


def _check_name(path: Path, file: str) -> Iterator[Diagnostic]:
    if not _NAME.fullmatch(path.stem) or path.suffix != ".yaml":
        message = f"'{path.name}' is no name for a change record."
        hint = "Name it by its number and title, like 0007-bounded-summaries.yaml."
        yield Diagnostic(Place(file, 1, 1), "E901", message, hint)


def _check_header(source: Source) -> Iterator[Diagnostic]:
    if source.text.partition("\n")[0].rstrip() != HEADER:
        message = "The first line does not name the schema of change records."
        yield Diagnostic(
            Place(source.name, 1, 1, source.text.partition("\n")[0]),
            "E903",
            message,
            f"Begin with '{HEADER}'.",
        )


def _check_numbers_unique(records: list[RecordFile]) -> Iterator[Diagnostic]:
    first: dict[int, RecordFile] = {}
    for record in records:
        if (other := first.setdefault(record.number, record)) is not record:
            message = f"{record.number:04} is already the number of {other.name}."
            hint = f"Numbers count over all systems; the next is {format_next_number(records)}."
            yield Diagnostic(Place(record.source.name, 1, 1), "E902", message, hint)


def _check_resolved_once(records: list[RecordFile]) -> Iterator[Diagnostic]:
    first: dict[tuple[str, str], RecordFile] = {}
    for record in records:
        for index, question in enumerate(record.body.resolves):
            other = first.setdefault((record.body.system, question), record)
            if other is not record:
                message = f"{question} is already resolved by {other.name}."
                yield Diagnostic(
                    record.place("resolves", index), "E908", message, "Name it in one record only."
                )
