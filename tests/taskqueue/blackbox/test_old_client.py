"""Old client, new server: a client built from the accepted spec still works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.emit.proto.proto_files import emit
from codegen.review.accepted import read_accepted
from runtime.launch import Launched

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "tests/support/taskqueue/old_client.py"
QUEUED, DONE = 1, 3


@pytest.mark.req("TQ-209")
def test_a_client_of_the_accepted_spec_is_served(deployment: Launched, tmp_path: Path) -> None:
    """Its stubs are compiled from the accepted form of the spec, and all five methods answer as they did."""
    accepted = read_accepted(ROOT, "taskqueue").spec
    assert accepted is not None
    public = next(each for each in emit(accepted) if each.path.endswith("taskqueue_public.proto"))
    (tmp_path / "taskqueue_public.proto").write_text(public.text, encoding="utf-8")
    compiler = (sys.executable, "-m", "grpc_tools.protoc", f"-I{tmp_path}")
    run(
        *compiler,
        f"--python_out={tmp_path}",
        f"--grpc_python_out={tmp_path}",
        "taskqueue_public.proto",
        path=tmp_path,
    )
    address = deployment.env["CHARTER_ADDRESS"].partition(",")[0]
    answers = json.loads(run(sys.executable, str(CLIENT), address, path=tmp_path))
    accepted_at = answers["submitted"][1]
    assert answers == {
        "submitted": [QUEUED, accepted_at],
        "status": [DONE, accepted_at],
        "result": [True, DONE, 7],
        "canceled": [True, True, DONE],
        "listed": ["old"],
    }
    assert accepted_at > 0


def run(*command: str, path: Path) -> str:
    """The output of a command, with the folder of the old stubs first on its path."""
    completed = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(path)}, check=False, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
