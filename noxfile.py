"""The commands of the project: `nox -s <session>`; `nox` alone runs `test`.

The sessions share one virtual environment, so that only the first of them pays for installing.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["test"]

VENV = Path(".nox") / f"charter-{sys.version_info.major}.{sys.version_info.minor}"
PARALLEL = ("-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile", "--no-loadscope-reorder")
"""More workers than cores, as many tests wait; what each runs and in which order says tests/scheduling.py."""
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
DEMO = "taskqueue.microservices"


@nox.session(python=False)
def generate(session: nox.Session) -> None:
    """Write every artefact of the specs."""
    run(session, "python", "-m", "codegen", "generate", *session.posargs)


@nox.session(python=False)
def test(session: nox.Session) -> None:
    """Check that nothing is stale, lint and test. With arguments: only pytest, with those, such as --cov."""
    if session.posargs:
        run(session, "pytest", *session.posargs)
        return
    # The type checker would have half a minute to itself, and most tests wait for something now and then.
    with beside(session, "mypy"):
        run(session, "python", "-m", "codegen", "generate", "--check", "--full")
        run(session, "python", "-m", "codegen", "review", "--check")
        run_linters(session)
        run(session, "pytest", *PARALLEL)


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Lint and type-check."""
    run_linters(session)
    run(session, "mypy")


@nox.session(python=False)
def fix(session: nox.Session) -> None:
    """Mend what the linters can mend by themselves."""
    run(session, "ruff", "check", "--fix", ".")
    run(session, "ruff", "format", ".")


@nox.session(python=False)
def licenses(session: nox.Session) -> None:
    """Vet the licence of every package that the service needs."""
    run(session, "python", "-m", "scripts.licenses")


@nox.session(python=False)
def review(session: nox.Session) -> None:
    """Compare the specs with their last accepted form."""
    run(session, "python", "-m", "codegen", "review", *session.posargs)


@nox.session(python=False)
def conformance(session: nox.Session) -> None:
    """List the requirement ids that no test carries."""
    run(session, "python", "-m", "scripts.conformance", *session.posargs)


@nox.session(python=False)
def up(session: nox.Session) -> None:
    """Run a deployment on this machine until Ctrl-C: `-- <system>.<deployment>`."""
    become(session, "python", "-m", "runtime.launch", "up", *session.posargs)


@nox.session(python=False)
def demo(session: nox.Session) -> None:
    """Bring a deployment up, show what it does, and take it down."""
    become(session, "python", "-m", "runtime.launch", "demo", *(session.posargs or [DEMO]))


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """Measure the designs of the taskqueue and write a report; `-- --quick`, or `-- engine` and the like."""
    become(session, "python", "-m", "bench", *session.posargs)


@nox.session(python=False)
def certs(session: nox.Session) -> None:
    """Make a private authority and a certificate for each node: `-- <system>.<deployment>`."""
    run(session, "python", "-m", "runtime.certs", *session.posargs)


@nox.session(python=False)
def compose(session: nox.Session) -> None:
    """Prove a generated compose file in real containers; needs a Docker engine with compose v2."""
    run(session, "python", "-m", "scripts.compose_proof", *(session.posargs or ["taskqueue.microservices"]))


@nox.session(reuse_venv=True)
def lock(session: nox.Session) -> None:
    """Resolve both lock files again; `-- --upgrade` takes the newest versions."""
    # It has an environment of its own, because it must work when the locks do not.
    session.install("uv")
    for lock_file, options in (
        ("requirements.lock", ("--extra", "dev")),
        (
            "requirements-run.lock",
            ("--extra", "objects", "--extra", "wasi", "--constraint", "requirements.lock"),
        ),
    ):
        session.run(
            *("uv", "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version", "3.11"),
            *("--generate-hashes", "--no-emit-index-url", "--custom-compile-command", "nox -s lock"),
            *(*options, "--output-file", lock_file, "pyproject.toml", *session.posargs),
        )


def run_linters(session: nox.Session) -> None:
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")
    run(session, "buf", "lint")


def run(session: nox.Session, tool: str, *arguments: str) -> None:
    """Run a tool of the shared environment, which its child processes see as activated."""
    install(session)
    session.run(str(BIN / tool), *arguments, env=activated())


@contextmanager
def beside(session: nox.Session, tool: str) -> Iterator[None]:
    """Runs a tool while other things run, and tells afterwards what it said."""
    install(session)
    session.log(f"{tool}, beside what follows")
    with tempfile.TemporaryFile("w+") as said:
        begun = subprocess.Popen(
            [str(BIN / tool)], stdout=said, stderr=subprocess.STDOUT, env={**os.environ, **activated()}
        )
        try:
            yield
        finally:
            failed = begun.wait()
            said.seek(0)
            session.log(f"{tool}: {said.read().rstrip()}")
        if failed:
            session.error(f"{tool} has found something")


def become(session: nox.Session, tool: str, *arguments: str) -> None:
    """Run a tool in nox's own place, so that signals reach it and nox does not cut its orderly stop short."""
    install(session)
    session.log(" ".join((tool, *arguments)))
    os.execve(BIN / tool, (str(BIN / tool), *arguments), {**os.environ, **activated()})


def activated() -> dict[str, str]:
    path = os.pathsep.join((str(BIN.absolute()), os.environ.get("PATH", "")))
    # Whatever the surroundings wish, modules are compiled once, for all the processes that load them.
    return {"PATH": path, "VIRTUAL_ENV": str(VENV.absolute()), "PYTHONDONTWRITEBYTECODE": ""}


def install(session: nox.Session) -> None:
    """Bring the shared environment up to date, unless its stamp says that it is."""
    stamp = VENV / "installed"
    sources = (Path("requirements.lock"), Path("pyproject.toml"))
    wanted = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    session.run(sys.executable, "-m", "venv", str(VENV))
    pip = (str(BIN / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    session.run(*pip, "--require-hashes", "--requirement", "requirements.lock")
    session.run(*pip, "--no-deps", "--no-build-isolation", "--editable", ".")
    stamp.write_text(wanted)
