"""Tests of the comparison between contract checklists and the ids that tests carry."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import conformance

CHECKLIST = """# Demo

A line about DM-900 that is no list entry.

- DM-001: one.
- DM-002: two.
- DM-003: three, see CH-02.
- DM-004: four.
- DM-006: six.
- CH-01: a resolution.
- CH-02: another.
"""


def project(root: Path, tests: str = "", checklist: str = CHECKLIST, system: str = "demo") -> Path:
    """Write a checklist and one test module below root."""
    for name, text in ((f"spec/{system}/requirements.md", checklist), ("tests/deep/test_demo.py", tests)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_counts_requirements_and_resolutions_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text report has one count for requirements and one for resolutions, each with its gaps."""
    root = project(tmp_path, 'import pytest\n@pytest.mark.req("DM-006", "CH-02")\ndef test_a(): ...\n')

    assert conformance.main([], root) == 0

    assert capsys.readouterr().out.splitlines() == [
        "demo: 1 of 5 ids have a test",
        "  without a test: DM-001…DM-004",
        "demo resolutions: 1 of 2 ids have a test",
        "  without a test: CH-01",
    ]


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.req("DM-001", "DM-002")\ndef test_a(): ...',
        '@pytest.mark.req("DM-001")\n@pytest.mark.req("DM-002")\nasync def test_a(): ...',
        '@pytest.mark.req("DM-001")\nclass TestA:\n    @pytest.mark.req("DM-002")\n    def test_a(self): ...',
        'pytestmark = pytest.mark.req("DM-001", "DM-002")',
        'pytestmark = [pytest.mark.slow, pytest.mark.req("DM-001"), pytest.mark.req("DM-002")]',
        'CASES = [pytest.param(1, marks=pytest.mark.req("DM-001")),'
        ' pytest.param(2, marks=[pytest.mark.req("DM-002")])]',
    ],
)
def test_finds_each_place_of_a_mark(tmp_path: Path, source: str) -> None:
    """Marks count on functions, classes, modules and parameters."""
    report = conformance.compare(project(tmp_path, source))

    assert report.errors == []
    assert report.systems[0].requirements.missing == ["DM-003", "DM-004", "DM-006"]


@pytest.mark.parametrize(
    "source",
    [
        '# @pytest.mark.req("DM-001")',
        '"""Say @pytest.mark.req("DM-001") and @pytest.mark.req("DM-999")."""',
        '@pytest.mark.required("DM-001")\ndef test_a(): ...',
        "@pytest.mark.req\ndef test_a(): ...",
    ],
)
def test_text_is_no_mark(tmp_path: Path, source: str) -> None:
    """Comments, strings and other marks carry no id."""
    report = conformance.compare(project(tmp_path, source))

    assert report.errors == []
    assert report.systems[0].requirements.missing == ["DM-001", "DM-002", "DM-003", "DM-004", "DM-006"]


def test_unknown_id_is_an_error_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An id that no checklist has ends with 1 and names file and line."""
    root = project(
        tmp_path, 'import pytest\n\n@pytest.mark.req(\n    "DM-001",\n    "DM-005",\n)\ndef test_a(): ...\n'
    )

    assert conformance.main([], root) == 1

    wanted = "error: tests/deep/test_demo.py:5: DM-005 is in no spec/*/requirements.md\n"
    assert capsys.readouterr().err == wanted


def test_unreadable_test_file_is_an_error(tmp_path: Path) -> None:
    """A test file that Python cannot parse is reported instead of ignored."""
    report = conformance.compare(project(tmp_path, "x = 1\ndef (:\n"))

    assert [error.startswith("tests/deep/test_demo.py:2: cannot be parsed") for error in report.errors] == [
        True
    ]


def test_an_id_belongs_to_one_line(tmp_path: Path) -> None:
    """An id listed twice, in one checklist or in two, is an error with its place."""
    project(tmp_path, checklist="- DM-001: one.\n- DM-001: again.\n")
    report = conformance.compare(project(tmp_path, checklist="\n- DM-001: theirs.\n", system="other"))

    assert report.errors == [
        "spec/demo/requirements.md:2: DM-001 is already in the checklist of demo",
        "spec/other/requirements.md:2: DM-001 is already in the checklist of demo",
    ]


def test_strict_demands_every_id(tmp_path: Path) -> None:
    """With --strict an id without a test ends with 1, and a full set with 0."""
    root = project(tmp_path, 'M = pytest.mark.req("DM-001")', "- DM-001: one.\n- CH-01: two.\n")
    assert conformance.main([], root) == 0
    assert conformance.main(["--strict"], root) == 1

    project(tmp_path, 'M = pytest.mark.req("DM-001", "CH-01")', "- DM-001: one.\n- CH-01: two.\n")
    assert conformance.main(["--strict"], root) == 0


def test_system_limits_report_and_strictness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --system only that system is printed and counted, while its tests may name other systems."""
    project(tmp_path, checklist="- OT-001: one.\n", system="other")
    root = project(tmp_path, 'M = pytest.mark.req("OT-001", "DM-001")')

    assert conformance.main(["--system", "other", "--strict"], root) == 0

    assert capsys.readouterr().out.splitlines() == [
        "other: 1 of 1 ids have a test",
        "other resolutions: 0 of 0 ids have a test",
    ]


def test_unknown_system_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A --system without a checklist ends with 2 and names the systems there are."""
    with pytest.raises(SystemExit) as stop:
        conformance.main(["--system", "nope"], project(tmp_path))

    assert stop.value.code == 2
    assert "--system: 'nope' has no checklist (known: demo)" in capsys.readouterr().err


def test_no_checklist_is_an_error(tmp_path: Path) -> None:
    """A tree without any checklist does not pass."""
    assert conformance.main([], tmp_path) == 1


def test_json_has_the_same_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json standard output is one object with counts, gaps and errors."""
    root = project(tmp_path, 'M = pytest.mark.req("DM-001", "DM-002", "DM-003", "DM-777")')

    assert conformance.main(["--json"], root) == 1

    assert json.loads(capsys.readouterr().out) == {
        "systems": [
            {
                "system": "demo",
                "requirements": {"total": 5, "tested": 3, "missing": ["DM-004", "DM-006"]},
                "resolutions": {"total": 2, "tested": 0, "missing": ["CH-01", "CH-02"]},
            }
        ],
        "errors": ["tests/deep/test_demo.py:1: DM-777 is in no spec/*/requirements.md"],
    }


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([], ""),
        (["TQ-001"], "TQ-001"),
        (["TQ-001", "TQ-002"], "TQ-001, TQ-002"),
        (["TQ-009", "TQ-010", "TQ-011", "TQ-013"], "TQ-009…TQ-011, TQ-013"),
        (["AA-001", "AA-002", "AA-003", "BB-004"], "AA-001…AA-003, BB-004"),
    ],
)
def test_neighbours_become_ranges(ids: list[str], text: str) -> None:
    """Three or more ids in a row are written as a range of one prefix."""
    assert conformance.format_ids(ids) == text


def test_task_queue_checklist_is_whole() -> None:
    """The checklist of the task queue has every id from TQ-001 to TQ-221 and CH-01 to CH-94 in order."""
    ids = [
        line[2:].partition(":")[0]
        for line in (conformance.ROOT / "spec/taskqueue/requirements.md").read_text("utf-8").splitlines()
        if line.startswith("- ")
    ]

    assert ids == [f"TQ-{n:03}" for n in range(1, 222)] + [f"CH-{n:02}" for n in range(1, 95)]


def test_command_line_runs() -> None:
    """The command reads this repository's own checklist."""
    command = [sys.executable, "-m", "scripts.conformance", "--system", "taskqueue", "--json"]
    done = subprocess.run(
        command, cwd=conformance.ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    report = json.loads(done.stdout)
    assert report["systems"][0]["requirements"]["total"] == 221
    assert report["systems"][0]["resolutions"]["total"] == 94
    assert done.returncode == (1 if report["errors"] else 0)


def test_ids_may_have_a_letter(tmp_path: Path) -> None:
    """Ids with a letter are counted by themselves, and neighbours are listed as a range."""
    checklist = "- SH-001: a\n- SH-X01: b\n- SH-X02: c\n- SH-X03: d\n"
    (report,) = conformance.compare(project(tmp_path, checklist=checklist)).systems
    assert report.requirements.missing == ["SH-001", "SH-X01", "SH-X02", "SH-X03"]
    assert conformance.format_ids(report.requirements.missing) == "SH-001, SH-X01…SH-X03"
