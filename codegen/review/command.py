"""`python -m codegen review`: compare specs with their accepted form, and accept recorded differences."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click

from codegen.diagnostics import Diagnostic, SpecError, suggest
from codegen.review import revision
from codegen.review.accepted import (
    AcceptedForm,
    find_lost_records,
    list_accepted_systems,
    read_accepted,
    write_accepted,
)
from codegen.review.coverage import Review, check_coverage
from codegen.review.record import RecordFile, find_unknown_systems, format_next_number, read_records
from codegen.review.report import FORMATS, ReviewReport, format_report
from codegen.source.loader import examine
from codegen.source.spec import Spec


def main(arguments: list[str], root: Path) -> int:
    """Run a review; 0 if everything is recorded, 1 if not, 2 for wrong usage."""
    try:
        result = _command.main(arguments, "python -m codegen review", standalone_mode=False, obj=root)
    except click.ClickException as error:
        error.show()
        return 2
    except revision.UnknownRevision as error:
        print(f"codegen review: {error}.", file=sys.stderr)
        return 2
    return int(result or 0)


@click.command(help="Compares the specs of all systems, or of the named ones, with their accepted form.")
@click.argument("named", metavar="[SYSTEM]...", nargs=-1)
@click.option("--format", "style", type=click.Choice(FORMATS), default="text", help="Format of the report.")
@click.option("--base", metavar="REF", help="Compare with the specs of a git revision instead.")
@click.option("--check", is_flag=True, help="Say nothing if everything is recorded.")
@click.option("--accept", is_flag=True, help="Make the specs the accepted form if everything is recorded.")
@click.option("--system", "also", metavar="NAME", multiple=True, help="Only this system, as if named alone.")
@click.pass_obj
def _command(
    root: Path,
    named: tuple[str, ...],
    style: str,
    base: str | None,
    check: bool,
    accept: bool,
    also: tuple[str, ...],
) -> int:
    if accept and (base or check):
        raise click.UsageError("--accept stands alone: it compares with the accepted form and writes it.")
    commit = revision.resolve_revision(root, base) if base is not None else None
    systems = _list_systems(root, commit)
    wanted = [*dict.fromkeys((*named, *also))]
    for each in wanted:
        if each not in systems:
            raise click.UsageError(f"There is no system '{each}'. {suggest(each, systems)}")
    records, complaints = read_records(root)
    complaints += find_unknown_systems(records, systems)
    if wanted:
        # Complaints about the record of another system belong to the review of that system.
        others = {each.source.name for each in records if each.body.system not in wanted}
        complaints = [each for each in complaints if each.place.file not in others]
    reviews: list[Review] = []
    for system in wanted or systems:
        try:
            reviews.append(_review_system(root, system, records, commit))
        except SpecError as error:
            complaints += error.diagnostics
    against = f"revision {base}" if base else "its accepted form"
    report = ReviewReport(reviews, complaints, against, format_next_number(records))
    if check:
        report = replace(report, reviews=[each for each in reviews if not each.is_recorded])
    if not (check and report.is_recorded):
        print(format_report(report, style))
    accepted = _accept(root, report) if accept else True
    return 0 if report.is_recorded and accepted else 1


def _list_systems(root: Path, commit: str | None) -> list[str]:
    present = {path.parent.name for path in (root / "spec").glob("*/system.yaml")}
    known = revision.list_systems_at(root, commit) if commit else list_accepted_systems(root)
    return sorted({*present, *known})


def _review_system(root: Path, system: str, records: Iterable[RecordFile], commit: str | None) -> Review:
    current = _load_current(root, system)
    if commit:
        there = revision.list_records_at(root, commit)
        pending = [each for each in records if each.name not in there]
        return check_coverage(system, revision.load_form_at(root, commit, system), current, pending)
    accepted = read_accepted(root, system)
    _raise_if_any(find_lost_records(system, accepted, (each.name for each in records)))
    pending = [each for each in records if each.name not in accepted.records]
    return check_coverage(system, accepted, current, pending)


def _load_current(root: Path, system: str) -> Spec | None:
    folder = root / "spec" / system
    if not (folder / "system.yaml").exists():
        return None
    spec, complaints = examine(folder, root)
    _raise_if_any(each for each in complaints if each.severity == "error")
    return spec


def _raise_if_any(complaints: Iterable[Diagnostic]) -> None:
    if found := [*complaints]:
        raise SpecError(found)


def _accept(root: Path, report: ReviewReport) -> bool:
    """Write the accepted form of each system; False if one needs a migration that cannot be derived."""
    # Imported here because the emitters behind it write the catalogue, which knows the complaints of reviews.
    from codegen import migrations

    if not report.is_recorded:
        print("\nNothing is accepted: everything has to be recorded first.")
        return False
    complete = True
    for review in report.reviews:
        before: AcceptedForm = read_accepted(root, review.system)
        if review.current is not None:
            title = review.pending[-1].body.title if review.pending else ""
            try:
                written = migrations.write_all(root, before.spec, review.current, title)
            except migrations.MigrationNotDerivable as error:
                print(f"\n{error}")
                complete = False
                continue
            for path in written:
                print(f"\n{review.system}: {path.relative_to(root)} is written; run `nox -s generate`.")
        # Sorted by number, as branches may be accepted in another order than their records were written.
        names = sorted((*before.records, *(each.name for each in review.pending)))
        changed = write_accepted(root, review.system, review.current, names)
        print(f"\n{review.system}: {'accepted' if changed else 'nothing to accept'}.")
    return complete
