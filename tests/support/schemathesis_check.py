"""Check of a service against its OpenAPI document, with Schemathesis."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.deep import DEEP


def check_description(url: str, folder: Path, *options: str, bounds: bool = True) -> None:
    """Check that a service does what its document describes, links included; fail with the request if not.

    With `bounds` each value is tried at the limits of its schema and beyond; with `--deep` also at random.
    """
    phases = ["examples", *(["coverage"] if bounds else []), *(["fuzzing"] if DEEP else []), "stateful"]
    command = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    assert command is not None
    done = subprocess.run(
        [
            *(command, "run", f"{url}/openapi.json"),
            *("--phases", ",".join(phases)),
            *("--max-examples", "100" if DEEP else "2"),
            # One worker: Python 3.11 loses count of its own parser where two threads use it at once.
            *("--seed", "7", "--workers", "1", "--no-color", "--request-timeout", "30"),
            *("--suppress-health-check", "all", "--generation-database", "none"),
            *options,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    assert "Stateful" in done.stdout
