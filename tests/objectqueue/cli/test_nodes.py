"""`qo worker` and `qo monitor`: their flags, and their behaviour as processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from runtime.launch.embedded.ports import allocate_ports
from tests.support.eventually import wait_until
from tests.support.objectqueue.shell import DONE, QO, TROUBLE, USAGE, Shell

WORKER_FLAGS = {
    "--id": ("w7", "QO_WORKER_ID"),
    "--shards": ("0,A,f", "QO_SHARDS"),
    "--index-mode": ("log-scan", "QO_INDEX_MODE"),
    "--concurrency": ("4", "QO_CONCURRENCY"),
    "--handlers": ("some.module:registry", "QO_HANDLERS"),
}
MONITOR_FLAGS = {
    "--check-interval": ("1.5", "QO_MONITOR_CHECK_INTERVAL"),
    "--worker-health-threshold": ("90", "QO_MONITOR_WORKER_HEALTH_THRESHOLD"),
    "--sweep-interval": ("0", "QO_MONITOR_SWEEP_INTERVAL"),
    "--metrics-port": ("9100", "METRICS_PORT"),
}
SWITCHES = {
    "--no-monitor": "QO_NO_MONITOR",
    "--fail-unknown-types": "QO_FAIL_UNKNOWN_TYPES",
    "--renew-leases": "QO_RENEW_LEASES",
}


@pytest.fixture
def served_node(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Which node would have run, and in what environment."""
    found: dict[str, Any] = {}

    def main(arguments: list[str]) -> int:
        found.update(node=arguments[0], **os.environ)
        return 0

    monkeypatch.setattr("runtime.serve.main", main)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return found


@pytest.mark.req("OQ-228", "OQ-217", "OQ-237", "OQ-140")
def test_flags_of_a_worker_override_its_variables(shell: Shell, served_node: dict[str, Any]) -> None:
    """Each of them; without a flag the variable counts."""
    shell.run("worker", QO_WORKER_ID="other")
    assert served_node["QO_WORKER_ID"] == "other" and "QO_NO_MONITOR" not in served_node
    flags = {**WORKER_FLAGS, **MONITOR_FLAGS}
    words = [word for flag, (value, _) in flags.items() for word in (flag, value)]
    shell.run("worker", *words, *SWITCHES, QO_WORKER_ID="other", QO_SHUTDOWN_GRACE="3")
    assert served_node["node"] == "objectqueue.local.worker"
    for value, variable in flags.values():
        assert served_node[variable] == value.lower()
    assert [served_node[each] for each in SWITCHES.values()] == ["true"] * 3
    assert served_node["QO_SHUTDOWN_GRACE"] == "3"


@pytest.mark.req("OQ-229", "OQ-217")
def test_flags_of_a_monitor_override_its_variables(shell: Shell, served_node: dict[str, Any]) -> None:
    """Each of them."""
    words = [word for flag, (value, _) in MONITOR_FLAGS.items() for word in (flag, value)]
    shell.run("monitor", *words, QO_MONITOR_CHECK_INTERVAL="7")
    assert served_node["node"] == "objectqueue.local.monitor"
    for value, variable in MONITOR_FLAGS.values():
        assert served_node[variable] == value


@pytest.mark.req("OQ-206", "OQ-207", "OQ-208", "OQ-209", "OQ-210", "OQ-211", "OQ-212", "OQ-213", "OQ-220")
def test_variables_of_nodes_have_defaults_and_bounds() -> None:
    """As documented; a value out of bounds is refused."""
    from generated.objectqueue.settings import VARIABLES
    from runtime.node.settings import SettingsError, read

    expected = {
        "QO_INDEX_MODE": ("hybrid", "fast"),
        "QO_READY_PAGE_SIZE": (100, "0"),
        "QO_LOG_SCAN_PAGE_SIZE": (50, "1.5"),
        "QO_NO_MONITOR": (False, "maybe"),
        "QO_MONITOR_CHECK_INTERVAL": (30, "0"),
        "QO_MONITOR_WORKER_HEALTH_THRESHOLD": (60, "-1"),
        "QO_MONITOR_SWEEP_INTERVAL": (300, "-1"),
        "QO_MONITOR_SWEEP_PAGE_SIZE": (1000, "1001"),
    }
    for name, (default, wrong) in expected.items():
        assert read([VARIABLES[name]], (), {})[name] == default
        with pytest.raises(SettingsError, match=name):
            read([VARIABLES[name]], (), {name: wrong})
    for text, value in (("true", True), ("1", True), ("false", False), ("0", False)):
        assert read([VARIABLES["QO_NO_MONITOR"]], (), {"QO_NO_MONITOR": text})["QO_NO_MONITOR"] is value


@pytest.mark.req("OQ-262", "OQ-093", "OQ-221", "OQ-237", "OQ-264", "OQ-268", "OQ-X05", "OQ-175", "OQ-165")
def test_a_worker_process_runs_submitted_tasks(shell: Shell) -> None:
    """From submitting to the end, by commands alone; it listens nowhere, and stops on a signal."""
    completed = shell.submit("--input", '{"n": 1}')
    broken = shell.out("submit", "--type", "add", "--input", '"not two numbers"')
    flags = "--id", "w1", "--handlers", "tests.support.objectqueue.functions", "--concurrency", "2"
    with start_command(shell, "worker", *flags) as worker:
        assert json.loads(shell.out("wait", completed, "--seconds", "90")) == {"n": 1}
        failed = shell.run("wait", broken, "--seconds", "90")
        assert (failed.exit_code, failed.stdout) == (TROUBLE, "failed\n")
        assert shell.out("submit", "--type", "echo", "--input", "2", "--wait") == "2"
        (only,) = shell.json("workers")["workers"]
        assert only["live"] and only["worker"]["worker_id"] == "w1"
        listening = [each for each in _list_connections(worker) if each.status == psutil.CONN_LISTEN]
        assert listening == []
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == DONE
    assert shell.json("workers")["workers"] == []
    statuses = [each["task"]["status"] for each in shell.json("history", completed)]
    assert statuses == ["Pending", "Running", "Completed"]


@pytest.mark.req("OQ-268", "OQ-229")
def test_metrics_are_served_if_a_port_is_set(shell: Shell) -> None:
    """By a monitor of its own here."""
    (port,) = allocate_ports(1)
    with start_command(shell, "monitor", "--metrics-port", str(port)) as monitor:
        with _open(f"http://127.0.0.1:{port}/metrics") as page:
            assert b"# HELP" in page.read()
        monitor.send_signal(signal.SIGINT)
        assert monitor.wait(60) == DONE


@pytest.mark.req("OQ-236", "OQ-235", "OQ-237", "OQ-220")
@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (("--bucket", "there-is-none"), TROUBLE, "there-is-none"),
        (("--handlers", "no.such.module"), USAGE, "no.such.module"),
        (("--index-mode", "index-only", "--sweep-interval", "0"), USAGE, "index-only"),
    ],
)
def test_a_worker_that_cannot_work_reports_it(
    shell: Shell, flags: tuple[str, ...], code: int, message: str
) -> None:
    """In one line, and ends."""
    command = [*QO, "worker", *flags]
    ended = subprocess.run(command, env=shell.environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert message in ended.stderr.splitlines()[-1] and "Traceback" not in ended.stderr


@contextmanager
def start_command(shell: Shell, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs until the test ends."""
    process = subprocess.Popen([*QO, *arguments], env=shell.environ, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _list_connections(process: subprocess.Popen[bytes]) -> list[Any]:
    family = psutil.Process(process.pid)
    return [found for each in (family, *family.children(recursive=True)) for found in each.net_connections()]


def _open(url: str) -> Any:
    def look() -> Any:
        try:
            return urllib.request.urlopen(url)
        except OSError:
            return None

    return wait_until(look, f"{url} answers")
