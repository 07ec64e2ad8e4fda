"""The generator as a command: what it writes, when it writes nothing, and what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.generate import build
from codegen.output import Deviation, apply
from codegen.source.loader import load
from tests.support.codegen.cached_loading import cached_protos
from tests.support.codegen.projects import LOCKER, ROOT, TASKQUEUE, edit, project, snapshot

OUTPUTS = ("proto", "generated", "docs", "spec/schema")


def generate(root: Path, *options: str) -> int:
    return main(["generate", "--root", str(root), *options])


@pytest.fixture(scope="module", autouse=True)
def _compiling_once() -> Iterator[None]:
    with cached_protos():
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has been generated; tests take copies of it."""
    root = project(tmp_path_factory.mktemp("finished"))
    assert generate(root) == 0
    return root


@pytest.fixture
def root(finished: Path, tmp_path: Path) -> Path:
    """A generated project of one's own."""
    return shutil.copytree(finished, tmp_path / "project")


def test_a_run_writes_every_artefact(finished: Path) -> None:
    """All kinds of files are there with the bytes that were made, and nothing else is in their folders."""
    wanted, _ = build(finished)
    files = snapshot(finished)
    assert {path: text.encode() for path, text in wanted.items()}.items() <= files.items()
    assert {path for path in files if path.startswith(OUTPUTS)} == set(wanted)
    for part in (
        "proto/taskqueue_public.proto",
        "generated/taskqueue_public_pb2_grpc.pyi",
        "docs/reference/errors.md",
    ):
        assert part in wanted


@pytest.mark.req("TQ-208")
def test_the_committed_files_are_what_the_spec_makes(finished: Path) -> None:
    """Generating the spec elsewhere gives the stubs, tables and protos of this repository, byte for byte."""
    made = {path: content for path, content in snapshot(finished).items() if path.startswith(OUTPUTS)}
    mine = {path: (ROOT / path).read_bytes() for path in made if "taskqueue" in path}
    assert mine == {path: content for path, content in made.items() if "taskqueue" in path}


def test_a_second_run_changes_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a run with nothing to do nor a full one touches a file that is as it should be."""
    before = {path: (root / path).stat().st_mtime_ns for path in snapshot(root)}
    assert generate(root, "--full") == 0
    assert "0 of them changed" in capsys.readouterr().out
    assert generate(root) == 0
    assert "nothing has changed since the last run" in capsys.readouterr().out
    assert {path: (root / path).stat().st_mtime_ns for path in snapshot(root)} == before


def test_a_fresh_project_passes_the_check(root: Path) -> None:
    """The check is green right after a run, also when it renders everything again."""
    assert generate(root, "--check") == 0
    assert generate(root, "--check", "--full") == 0


FILES = {
    "generated": "generated/taskqueue/callers.py",
    "stubs": "generated/taskqueue_internal_pb2.pyi",
    "proto": "proto/taskqueue_public.proto",
    "docs": "docs/reference/taskqueue/lifecycle-job.svg",
    "schema": "spec/schema/types.schema.json",
    "deploy": "generated/taskqueue/deploy/service_config.json",
}


def delete(path: Path) -> Path:
    path.unlink()
    return path


def touch_up(path: Path) -> Path:
    path.write_bytes(path.read_bytes() + b"\n")
    return path


def add_beside(path: Path) -> Path:
    path.with_name("stray.txt").touch()
    return path.with_name("stray.txt")


REASONS: dict[Callable[[Path], Path], str] = {
    delete: "is missing",
    touch_up: "differs from what the specs say",
    add_beside: "no spec generates",
}


@pytest.mark.parametrize("place", FILES)
@pytest.mark.parametrize("change", REASONS)
def test_the_check_finds_what_is_not_fresh(
    place: str, change: Callable[[Path], Path], root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A deleted, edited or foreign file fails the check, which names it, the reason and the command."""
    changed = change(root / FILES[place]).relative_to(root).as_posix()
    before = snapshot(root)
    assert generate(root, "--check") == 1
    first, summary = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{changed}: ")
    assert REASONS[change] in first
    assert first.endswith("Run `nox -s generate`.")
    assert summary.startswith("1 of ")
    assert snapshot(root) == before


def test_a_run_puts_everything_right(root: Path) -> None:
    """What is missing comes back, what was edited is undone, what is foreign goes, with its empty folders."""
    before = snapshot(root)
    (root / FILES["proto"]).unlink()
    (root / FILES["generated"]).write_text("mine")
    (root / "generated/old/deep").mkdir(parents=True)
    (root / "generated/old/deep/orphan.py").touch()
    assert generate(root) == 0
    assert snapshot(root) == before
    assert not (root / "generated/old").exists()


def test_the_page_of_a_system_that_is_gone_goes_too(root: Path) -> None:
    """Its page has the stamp of a spec, and its pictures are in the folder of its name."""
    gone = [root / "docs/reference/gone.md", root / "docs/reference/gone/lifecycle-job.svg"]
    gone[1].parent.mkdir()
    gone[0].write_text("<!-- Generated from spec/gone (sha256:0). -->\n")
    gone[1].touch()
    assert generate(root, "--check", "--full") == 1
    assert generate(root) == 0
    assert not gone[0].exists() and not gone[1].parent.exists()


def test_files_beside_the_outputs_are_nobody_elses_business(root: Path) -> None:
    """Pages that people write, caches of tools and other folders stay as they are."""
    kept = ["docs/reference/guide.md", "handlers/mine.py", "generated/__pycache__/x.pyc"]
    for path in kept:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("mine")
    assert generate(root, "--check", "--full") == 0
    assert all((root / path).read_text() == "mine" for path in kept)


@pytest.mark.parametrize("generated_before", [True, False])
def test_a_wrong_spec_writes_nothing_at_all(
    generated_before: bool, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One error in one spec, and no file of any spec is written or taken away."""
    root = shutil.copytree(finished, tmp_path / "p") if generated_before else project(tmp_path / "p")
    project(root, [LOCKER])
    edit(root / "spec/taskqueue/callers.yaml", "- CreateJob\n", "- CreateJobs\n")
    before = snapshot(root, without=())
    assert generate(root) == 1
    assert snapshot(root, without=()) == before
    assert capsys.readouterr().out.startswith("spec/taskqueue/callers.yaml:")


@pytest.mark.parametrize(
    "path", ["../outside.py", "codegen/source/loader.py", "spec/taskqueue/types.yaml", "README.txt"]
)
def test_nothing_is_written_outside_the_output_folders(path: str, root: Path) -> None:
    """A path that leads elsewhere is refused before the first file is written."""
    before = snapshot(root.parent, without=())
    wanted = {"generated/new.py": "new", path: "new"}
    with pytest.raises(ValueError, match="outside the folders for generated files"):
        apply(root, wanted, [Deviation(each, "missing") for each in wanted])
    assert snapshot(root.parent, without=()) == before


def test_a_link_does_not_lead_out_of_the_output_folders(root: Path, tmp_path: Path) -> None:
    """A folder that points elsewhere is not written through."""
    elsewhere = tmp_path / "elsewhere"
    shutil.move(root / "generated/taskqueue", elsewhere)
    (root / "generated/taskqueue").symlink_to(elsewhere)
    (elsewhere / "callers.py").write_text("mine")
    with pytest.raises(ValueError, match="outside the folders for generated files"):
        generate(root)
    assert (elsewhere / "callers.py").read_text() == "mine"


@pytest.mark.parametrize("survives", [0, 1, 7])
def test_a_failure_while_writing_leaves_whole_files(
    survives: int, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk gives out in the middle, each file is the old or the new one, and the next run mends it."""
    old = snapshot(root)
    edit(root / "spec/taskqueue/system.yaml", "attempts: 4", "attempts: 5")
    replace, calls = os.replace, iter(range(1000))

    def failing(source: Any, target: Any) -> None:
        if next(calls) >= survives:
            raise OSError(28, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, "replace", failing)
        generate(root)
    wanted = {path: text.encode() for path, text in build(root)[0].items()}
    found = snapshot(root)
    changed = [path for path in wanted if found[path] != old[path]]
    assert len(changed) == survives
    assert all(found[path] in (old[path], wanted[path]) for path in wanted)
    assert not list(root.glob(".charter-*"))
    assert generate(root) == 0
    assert {path: snapshot(root)[path] for path in wanted} == wanted


def test_the_bytes_do_not_depend_on_where_and_how_it_runs(finished: Path, tmp_path: Path) -> None:
    """Another hash seed, folder, locale, time zone and root give the same bytes."""
    root = project(tmp_path / "other" / "place")
    odd = {
        "PYTHONHASHSEED": "4711",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "TZ": "Asia/Tokyo",
    }
    subprocess.run(
        [sys.executable, "-m", "codegen", "generate", "--root", "place"],
        env={**os.environ, **odd, "PYTHONPATH": str(ROOT)},
        cwd=root.parent,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert snapshot(root) == snapshot(finished)


def test_a_stamp_is_the_hash_of_the_spec(finished: Path) -> None:
    """Every stamped file tells its spec and the spec's hash, and no time or version."""
    stamps = [
        line
        for path, content in snapshot(finished).items()
        if path.startswith(OUTPUTS) and not path.startswith("spec/")
        for line in content.decode().splitlines()
        if "Generated from spec/" in line
    ]
    digest = load(TASKQUEUE, ROOT).digest[:16]
    said = f"Generated from spec/taskqueue (sha256:{digest}). Do not edit; run `nox -s generate`."
    assert len(stamps) > 30
    assert {re.sub(r"^(//|#|<!--) | -->$", "", line) for line in stamps} == {said}


def test_a_comment_in_a_spec_changes_no_generated_byte(root: Path) -> None:
    """Comments, blank lines and the order of keys are how a spec is written, not what it says."""
    before = {path: content for path, content in snapshot(root).items() if path.startswith(OUTPUTS)}
    for path in (root / "spec/taskqueue").glob("*.yaml"):
        path.write_text(
            path.read_text(encoding="utf-8").replace("\n\n", "\n\n\n") + "\n# nothing\n", encoding="utf-8"
        )
    assert generate(root) == 0
    assert {path: content for path, content in snapshot(root).items() if path.startswith(OUTPUTS)} == before


def test_a_change_of_meaning_changes_every_stamp(root: Path) -> None:
    """A spec that says something else is told apart by its hash in each file that is made from it."""
    edit(root / "spec/taskqueue/system.yaml", "attempts: 4", "attempts: 5")
    before = load(TASKQUEUE, ROOT).digest[:16]
    assert generate(root) == 0
    files = [content.decode() for path, content in snapshot(root).items() if path.startswith(OUTPUTS)]
    after = load(root / "spec/taskqueue", root).digest[:16]
    assert after != before
    assert not any(before in text for text in files)
    assert sum(after in text for text in files) > 30


def test_a_run_with_nothing_to_do_loads_no_library(root: Path) -> None:
    """When nothing has changed, the command is over before it needs the models, the templates or YAML."""
    program = f"""
import sys
from codegen.__main__ import main
assert main(["generate", "--root", {str(root)!r}]) == 0
print(sorted({{"pydantic", "jinja2", "yaml", "grpc_tools", "codegen.generate"}} & sys.modules.keys()))
"""
    assert generate(root) == 0
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong word gets the usage and exit code 2; a plea for help gets it and 0."""
    assert (main([]), main(["fry"]), main(["generate", "--chek"]), main(["generate", "--root"])) == (
        2,
        2,
        2,
        2,
    )
    assert main(["generate", "--help"]) == 0
    assert "usage: python -m codegen generate" in capsys.readouterr().out
