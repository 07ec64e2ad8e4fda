"""Loading a folder of YAML files: a Spec, or complaints about the rest."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.diagnostics import SpecError
from codegen.language import FILES, OPTIONAL
from codegen.source.loader import examine, load
from codegen.source.yaml_reader import parse

ROOT = Path(__file__).parent.parent.parent
LOCKER = ROOT / "tests" / "specs" / "locker"
Change = Callable[[str, str, str], Path]


@pytest.fixture
def change(tmp_path: Path) -> Change:
    """Changes a text in a file of a copy of the locker spec."""
    spec = tmp_path / "locker"
    shutil.copytree(LOCKER, spec)

    def replace(name: str, old: str, new: str) -> Path:
        file = spec / f"{name}.yaml"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        return spec

    return replace


@pytest.mark.parametrize("folder", [ROOT / "spec" / "taskqueue", LOCKER], ids=lambda folder: folder.name)
def test_shipped_specs_load(folder: Path) -> None:
    """A spec without faults loads, and is called by its folder from the project's root."""
    spec = load(folder, ROOT)
    assert spec.folder == folder.relative_to(ROOT).as_posix()
    assert set(spec.sources) == FILES.keys() - OPTIONAL


def test_all_complaints_in_one_error(change: Change) -> None:
    """A faulty spec raises one error that carries every complaint."""
    change("callers", "      - RegisterParcel", "      - Register")
    with pytest.raises(SpecError, match="2 complaints") as error:
        load(change("lifecycle", "to: STORED", "to: STORD"))
    assert [each.code for each in error.value.diagnostics] == ["E402", "E203"]


def test_warning_does_not_stop(change: Change) -> None:
    """A spec with warnings only still loads."""
    folder = change("callers", "  recipient: {proof", "  thief: {proof: [token]}\n  recipient: {proof")
    assert load(folder).name == "locker"
    assert [each.severity for each in examine(folder)[1]] == ["warning"]


def test_digest_is_of_the_meaning(change: Change) -> None:
    """The digest stays when a spec is only written differently, and changes with its meaning."""
    before = load(LOCKER).digest
    written_differently = change("system", "version: 1", "# A comment.\nversion:   1")
    assert load(written_differently).digest == before
    assert load(change("system", "version:   1", "version: 2")).digest != before


def test_unreadable_entry_hides_nothing(change: Change) -> None:
    """An unreadable entry is omitted; the entries after it in a list still have their own places."""
    folder = change("callers", "      - RegisterParcel", "      - 7\n      - [x]\n      - RegisterParcels")
    found = [(each.code, each.place.line, each.place.column) for each in examine(folder)[1]]
    assert found == [("E005", 15, 9), ("E005", 16, 9), ("E402", 17, 9)]


def test_broken_definition_is_not_missed(change: Change) -> None:
    """A reference to a definition that cannot be read is no complaint about an undefined name."""
    folder = change("services", "doc: Moves a parcel if", "dok: Moves a parcel if")
    assert [each.code for each in examine(folder)[1]] == ["E004"]


def test_broken_file_is_one_complaint(change: Change) -> None:
    """A file that is no YAML gives its syntax error and no complaint about its content."""
    assert [each.code for each in examine(change("types", "desk:", "desk: ]"))[1]] == ["E001"]


def test_every_file_is_checked(change: Change) -> None:
    """An unreadable file does not keep the others from being checked."""
    change("types", "desk:", "desk: ]")
    complaints = examine(change("system", "version: 1", "version: one"))[1]
    assert sorted(each.code for each in complaints) == ["E001", "E005"]


def test_folder_instead_of_file(change: Change) -> None:
    """A folder with the name of a file is reported as such."""
    folder = change("system", "version: 1", "version: 1")
    (folder / "types.yaml").unlink()
    (folder / "types.yaml").mkdir()
    (complaint,) = examine(folder)[1]
    assert (complaint.code, complaint.message) == ("E003", "The file cannot be read: Is a directory.")


def test_a_missing_folder(tmp_path: Path) -> None:
    """A missing folder lacks all files."""
    spec, complaints = examine(tmp_path / "nowhere")
    assert spec is None
    assert [each.code for each in complaints] == ["E003"] * len(FILES.keys() - OPTIONAL)


def test_words_stay_text() -> None:
    """Only numbers, true, false and null are more than text; a date is a label and NO a country."""
    source, complaints = parse(
        "a.yaml", "a: [no, on, 2026-02-10, 1_000, 0x10, 007, 12, -3, 1.5, true, ~, 'true']"
    )
    assert complaints == []
    assert source.data == {
        "a": ["no", "on", "2026-02-10", "1_000", "0x10", "007", 12, -3, 1.5, True, None, "true"]
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_with_any_line_end(end: str) -> None:
    """Lines and columns count from 1, whatever ends the lines, and the line itself is there."""
    source, _ = parse("a.yaml", end.join(["# é", "a:", "  key: [ü, value]", ""]))
    place = source.place(("a", "key", 1))
    assert (place.line, place.column, place.length, place.source) == (3, 12, 5, "  key: [ü, value]")
    assert str(source.place(("a", "key"), key=True)) == "a.yaml:3:3"


def test_place_of_a_missing_value() -> None:
    """A missing value has the place where it would be: in the nearest thing around it."""
    source, _ = parse("a.yaml", "a:\n  b: 1\n")
    assert str(source.place(("a", "c", "d"))) == "a.yaml:2:3"
    assert str(source.place(("x",))) == "a.yaml:1:1"


def test_alias_has_the_place_of_its_anchor() -> None:
    """A value that is repeated by an alias is reported where it is written."""
    source, _ = parse("a.yaml", "a: &same {b: 1}\nc: *same\n")
    assert source.data == {"a": {"b": 1}, "c": {"b": 1}}
    assert str(source.place(("c", "b"))) == "a.yaml:1:14"


def test_examining_is_quick() -> None:
    """A whole spec is read and checked fast enough to do it on every keystroke."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        examine(ROOT / "spec" / "taskqueue")
        best = min(best, time.process_time() - start)
    assert best < 0.15
