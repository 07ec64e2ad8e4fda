"""The command ends with its exit code while its library still has threads in Python."""

from __future__ import annotations

from tests.runtime.node.test_process_exit import run
from tests.support.s3.fixtures import Bucket

MAIN = "from handlers.objectqueue.cli import main\nmain()\n"


def test_the_command_ends_with_its_exit_code(bucket: Bucket) -> None:
    assert run(MAIN, dict(bucket.variables), "init")[0] == 0
    code, output, _ = run(MAIN, dict(bucket.variables), "submit", "--type", "echo")
    assert (code, len(output.strip())) == (0, 36)
