"""The image: its files, its user, and its build."""

from __future__ import annotations

import re
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pytest

from codegen.emit.deploy import image
from tests.support.codegen.specs import FOLDERS, ROOT, run, spec, texts

DOCKERFILE = "generated/taskqueue/deploy/Dockerfile"
HADOLINT = Path(sys.executable).parent / "hadolint"


def read_dockerfile() -> str:
    return texts(image.emit, spec("spec/taskqueue"))[DOCKERFILE]


def is_in_build_context(path: str) -> bool:
    """Whether the build sees a file: the last pattern that matches it, or a folder it is in, decides."""
    ignore = texts(image.emit, spec("spec/taskqueue"))[f"{DOCKERFILE}.dockerignore"]
    here = PurePosixPath(path)
    names = [str(here), *(str(parent) for parent in here.parents if parent != PurePosixPath())]
    included = True
    for line in ignore.splitlines():
        pattern = line.lstrip("!")
        if line and not line.startswith("#") and any(_matches(name, pattern) for name in names):
            included = line.startswith("!")
    return included


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatchcase(PurePosixPath(name).name, pattern.removeprefix("**/"))
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


@pytest.mark.parametrize("folder", FOLDERS)
def test_hadolint_has_no_complaint(folder: str, tmp_path: Path) -> None:
    """The linter for Dockerfiles accepts every Dockerfile as it is."""
    for path, text in texts(image.emit, spec(folder)).items():
        if path.endswith(("Dockerfile", "Dockerfile.load")):
            (tmp_path / "Dockerfile").write_text(text, encoding="utf-8")
            completed = run(HADOLINT, tmp_path / "Dockerfile")
            assert (completed.returncode, completed.stdout) == (0, "")


@pytest.mark.req("TQ-168")
def test_constants_of_the_spec_are_in_the_image() -> None:
    """Without compose the image still has unbuffered output."""
    assert 'PYTHONUNBUFFERED="1"' in read_dockerfile()


def test_packages_are_the_locked_ones() -> None:
    """Packages come from the lock file, each verified by its hash, in a stage of its own."""
    text = read_dockerfile()
    assert re.search(r"--require-hashes .*--requirement /requirements-run.lock", text)
    assert "COPY --from=packages /venv /venv" in text
    assert text.count("\nFROM ${PYTHON_IMAGE}") == 2
    assert "ARG PYTHON_IMAGE=python:3.11-slim" in text


def test_the_image_runs_as_a_plain_user_and_starts_nothing_itself() -> None:
    """The last user is not root, and the command and the check are those of the deployment."""
    text = read_dockerfile()
    assert text.splitlines()[-1] == "USER 10001:10001"
    assert not re.search(r"^(ENTRYPOINT|CMD|HEALTHCHECK|EXPOSE)\b", text, re.MULTILINE)


def test_labels_have_title_and_version() -> None:
    """Title and version of the spec are labels of the image."""
    assert 'org.opencontainers.image.title="Distributed task queue"' in read_dockerfile()
    assert 'org.opencontainers.image.version="1"' in read_dockerfile()


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("requirements-run.lock", True),
        ("runtime/serve.py", True),
        ("scripts/healthcheck.py", True),
        ("generated/taskqueue_public_pb2.py", True),
        ("generated/taskqueue/system.py", True),
        ("handlers/taskqueue/gateway.py", True),
        ("handlers/jobs/built_in.py", True),
        ("generated/taskqueue/deploy/microservices/certs/gateway.key", False),
        ("generated/taskqueue/__pycache__/system.cpython-311.pyc", False),
        ("generated/other/system.py", False),
        ("handlers/other/gateway.py", False),
        ("scripts/conformance.py", False),
        ("codegen/source/spec.py", False),
        ("spec/taskqueue/system.yaml", False),
        (".env", False),
        (".git/config", False),
    ],
)
def test_the_build_context_has_only_the_files_of_the_image(path: str, wanted: bool) -> None:
    """The system's own code is in it; other systems, tools, secrets and caches are not."""
    assert is_in_build_context(path) is wanted


def test_the_load_generator_has_an_image_of_its_own() -> None:
    """It has the benchmark and its locked packages, which no node needs, and runs as a plain user."""
    found = texts(image.emit, spec("spec/taskqueue"))
    text, ignore = found[f"{DOCKERFILE}.load"], found[f"{DOCKERFILE}.load.dockerignore"]
    assert "--requirement /requirements-bench.lock" in text
    assert "COPY bench bench" in text
    assert text.splitlines()[-1] == "USER 10001:10001"
    assert {"!bench", "bench/results", "!requirements-bench.lock"} <= set(ignore.splitlines())
    assert "bench" not in read_dockerfile()
    assert f"{DOCKERFILE.replace('taskqueue', 'locker')}.load" not in texts(
        image.emit, spec("tests/specs/locker")
    )


@pytest.mark.req("CH-83")
def test_the_healthcheck_can_be_imported_where_the_image_works(tmp_path: Path) -> None:
    """The image's working directory is enough for `python -m scripts.healthcheck`."""
    workdir, copied = re.split(r"^WORKDIR (.*)$", read_dockerfile(), flags=re.MULTILINE)[1:]
    assert workdir == "/app"
    for folder in re.findall(r"^COPY (\w+) \1$", copied, re.MULTILINE):
        for file in (ROOT / folder).rglob("*"):
            path = file.relative_to(ROOT).as_posix()
            if file.is_file() and is_in_build_context(path):
                (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, tmp_path / path)
    found = "import scripts.healthcheck as found; print(found.__file__)"
    completed = run(sys.executable, "-c", found, cwd=tmp_path)
    assert completed.stdout.strip() == str(tmp_path / "scripts" / "healthcheck.py")
    completed = run(sys.executable, "-m", "scripts.healthcheck", "--mode", "tcp", cwd=tmp_path)
    assert (completed.returncode, "--target" in completed.stderr) == (2, True)
