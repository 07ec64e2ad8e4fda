"""The commands of the project: `nox -s <session>`; `nox` alone runs `test`.

Sessions share two virtual environments, so that only the first of them pays for installing: a small one that
runs deployments, and one that has the tools for generating, testing and measuring as well. The site of the
documentation has a third, which no other session needs.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["test"]

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PARALLEL = ("-n", str((os.cpu_count() or 1) + 4), "--dist", "loadfile", "--no-loadscope-reorder")
"""More workers than cores, as tests wait for three quarters of their time; tests/support/scheduling.py has
the order and grouping."""
DEMO = "taskqueue.microservices"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the packages of one lock file."""

    path: Path
    lock: Path
    purpose: str
    takes: str
    """The approximate duration of a first install."""
    has_project: bool = True
    """Whether the project itself is installed, too."""

    @property
    def bin(self) -> Path:
        return self.path / ("Scripts" if os.name == "nt" else "bin")

    def count_packages(self) -> int:
        return len(re.findall(r"^[A-Za-z0-9]", self.lock.read_text(encoding="utf-8"), re.MULTILINE))


RUN = Environment(
    Path(".nox") / f"charter-{PYTHON}", Path("requirements-local.lock"), "to run deployments", "half a minute"
)
TEST = Environment(
    Path(".nox") / f"test-{PYTHON}",
    Path("requirements.lock"),
    "to generate, test and measure",
    "one to two minutes",
)
DOCS = Environment(
    Path(".nox") / f"docs-{PYTHON}",
    Path("requirements-docs.lock"),
    "to build the documentation site",
    "half a minute",
    has_project=False,
)
SITE = Path("build") / "docs"


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
    # Run the type checker in the background: it takes half a minute, and most tests wait now and then.
    with run_in_background(session, "mypy"):
        run(session, "python", "-m", "codegen", "generate", "--check", "--full")
        run(session, "python", "-m", "codegen", "review", "--check")
        run_linters(session)
        # Compile the tests once: the parallel workers, which start together, would each do it.
        run(session, "pytest", "--collect-only", "-qq", silent=True)
        run(session, "pytest", *PARALLEL)


@nox.session(python=False)
def chaos(session: nox.Session) -> None:
    """Kill, race and cut off real servers for ten minutes: `-- [--seed N] [--minutes M] [paths]`."""
    run(session, "pytest", "--chaos", *PARALLEL, *session.posargs)


@nox.session(python=False)
def proxies(session: nox.Session) -> None:
    """Call both carriers of gRPC through nginx and HAProxy; `test` does so through nginx alone."""
    if shutil.which("haproxy") is None:
        session.error("haproxy is not installed, and no package for Python has it: apt-get install haproxy")
    session.env["CHARTER_PROXIES"] = "nginx,haproxy"
    run(session, "pytest", "tests/runtime/transport/grpc/contract/test_proxies.py", *session.posargs)


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Lint and type-check."""
    run_linters(session)
    run(session, "mypy")


@nox.session(python=False)
def fix(session: nox.Session) -> None:
    """Apply the automatic fixes of the linters."""
    run(session, "ruff", "check", "--fix", ".")
    run(session, "ruff", "format", ".")


@nox.session(python=False)
def docs(session: nox.Session) -> None:
    """Build the documentation site, which needs no network, in build/docs/site; every link is checked."""
    run(session, "python", "-m", "scripts.docs_site", str(SITE / "source"), environment=DOCS)
    session.env["NO_MKDOCS_2_WARNING"] = "1"
    run(session, "mkdocs", "build", "--strict", *session.posargs, environment=DOCS)
    run(session, "python", "-m", "scripts.docs_site", "--check", str(SITE / "site"), environment=DOCS)
    session.log(f"The site starts at {SITE / 'site' / 'index.html'}.")


@nox.session(python=False)
def licenses(session: nox.Session) -> None:
    """Vet the licence of every package that the service needs."""
    run(session, "python", "-m", "scripts.licenses")


@nox.session(python=False)
def tool(session: nox.Session) -> None:
    """Run a tool of the environment for tests: `-- ruff check .`; the hooks of pre-commit do."""
    run(session, *session.posargs)


@nox.session(python=False)
def review(session: nox.Session) -> None:
    """Compare the specs with their last accepted form."""
    run(session, "python", "-m", "codegen", "review", *session.posargs)


@nox.session(python=False)
def conformance(session: nox.Session) -> None:
    """List the requirement ids that no test carries."""
    run(session, "python", "-m", "scripts.conformance", *session.posargs)


@nox.session(python=False)
def walks(session: nox.Session) -> None:
    """Trace three jobs through their deployments and write docs/explanation/walks.md."""
    run(session, "python", "-m", "scripts.walks", *session.posargs)


@nox.session(python=False)
def words(session: nox.Session) -> None:
    """Write docs/reference/engine-words.md, the words of a lifecycle by storage engine."""
    run(session, "python", "-m", "scripts.engine_words")


@nox.session(python=False)
def up(session: nox.Session) -> None:
    """Run a deployment on this machine until Ctrl-C: `-- <system>.<deployment>`."""
    become(session, RUN, "python", "-m", "runtime.launch", "up", *session.posargs)


@nox.session(python=False)
def demo(session: nox.Session) -> None:
    """Start a deployment, show what it does, and stop it."""
    become(session, RUN, "python", "-m", "runtime.launch", "demo", *(session.posargs or [DEMO]))


@nox.session(python=False)
def bench(session: nox.Session) -> None:
    """Measure the designs of the taskqueue and write a report; `-- --quick`, or `-- engine` and the like."""
    become(session, TEST, "python", "-m", "bench", *session.posargs)


@nox.session(python=False)
def certs(session: nox.Session) -> None:
    """Make a private authority and a certificate for each node: `-- <system>.<deployment>`."""
    run(session, "python", "-m", "runtime.certs", *session.posargs, environment=RUN)


@nox.session(python=False)
def compose(session: nox.Session) -> None:
    """Prove a generated compose file in real containers; needs a Docker engine with compose v2."""
    run(session, "python", "-m", "scripts.compose_proof", *(session.posargs or ["taskqueue.microservices"]))


@nox.session(reuse_venv=True)
def lock(session: nox.Session) -> None:
    """Resolve the lock files again; `-- --upgrade` takes the newest versions."""
    # This session has an environment of its own, because it must work when the lock files do not.
    session.install("uv")
    for lock_file, options in (
        ("requirements.lock", ("--extra", "dev")),
        ("requirements-local.lock", ("--extra", "local", "--constraint", "requirements.lock")),
        ("requirements-bench.lock", ("--extra", "bench", "--constraint", "requirements.lock")),
        (
            "requirements-run.lock",
            ("--extra", "objects", "--extra", "wasi", "--constraint", "requirements.lock"),
        ),
        ("requirements-docs.lock", ("--group", "docs", "--constraint", "requirements.lock")),
    ):
        # uv finds a group in the project by itself; a group has no dependency of the project.
        sources = () if "--group" in options else ("pyproject.toml",)
        session.run(
            *("uv", "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version", "3.11"),
            *("--generate-hashes", "--no-emit-index-url", "--custom-compile-command", "nox -s lock"),
            *(*options, "--output-file", lock_file, *sources, *session.posargs),
        )


def run_linters(session: nox.Session) -> None:
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")
    run(session, "buf", "lint")


def run(
    session: nox.Session,
    tool: str,
    *arguments: str,
    environment: Environment = TEST,
    silent: bool = False,
) -> None:
    """Run a tool of an environment, which its child processes see as activated."""
    install(session, environment)
    variables = make_activated_variables(environment)
    # A silent tool prints its output only if it fails.
    session.run(str(environment.bin / tool), *arguments, env=variables, silent=silent)


@contextmanager
def run_in_background(session: nox.Session, tool: str) -> Iterator[None]:
    """Run a tool in the background, and print its output at the end."""
    install(session, TEST)
    session.log(f"{tool}, in the background")
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [str(TEST.bin / tool)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **make_activated_variables(TEST)},
        )
        try:
            yield
        finally:
            failed = process.wait()
            output.seek(0)
            session.log(f"{tool}: {output.read().rstrip()}")
        if failed:
            session.error(f"{tool} reported errors")


def become(session: nox.Session, environment: Environment, tool: str, *arguments: str) -> None:
    """Replace nox by a tool, so that signals reach it and nox does not interrupt its graceful shutdown."""
    install(session, environment)
    session.log(" ".join((tool, *arguments)))
    program = environment.bin / tool
    os.execve(program, (str(program), *arguments), {**os.environ, **make_activated_variables(environment)})


def make_activated_variables(environment: Environment) -> dict[str, str]:
    """Make the variables of an activated environment."""
    path = os.pathsep.join((str(environment.bin.absolute()), os.environ.get("PATH", "")))
    # Write bytecode whatever the caller has set, so that modules are compiled once for all processes.
    return {"PATH": path, "VIRTUAL_ENV": str(environment.path.absolute()), "PYTHONDONTWRITEBYTECODE": ""}


def install(session: nox.Session, environment: Environment) -> None:
    """Install an environment, unless its stamp shows that it is up to date."""
    stamp = environment.path / "installed"
    sources = (environment.lock, Path("pyproject.toml"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    session.log(
        f"Installing {environment.count_packages()} packages {environment.purpose} into {environment.path}. "
        f"It is done once and takes {environment.takes}."
    )
    session.run(sys.executable, "-m", "venv", "--clear", str(environment.path))
    pip = (str(environment.bin / "python"), "-m", "pip", "--disable-pip-version-check")
    session.run(*pip, *make_install_arguments(environment.lock))
    if environment.has_project:
        session.run(*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ".")
    session.run(*pip, "check")
    stamp.write_text(digest)


def make_install_arguments(lock_file: Path) -> tuple[str, ...]:
    """Make the arguments for pip that install exactly the packages of a lock file.

    Without --no-deps pip asks the index for anything that a package wants with an extra, since a lock names
    packages without extras, and then refuses a newer release than the locked one.
    """
    return ("install", "--quiet", "--no-deps", "--require-hashes", "--requirement", str(lock_file))
