"""The deployment as `up` starts it, and the commands of its users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from handlers.queuey.samples import binary
from runtime.cli import charter
from runtime.launch.__main__ import command
from runtime.launch.planning.replicas import WrongReplicas, with_replicas
from runtime.node.systems import find_deployment
from tests.runtime.launch.up import up

DEPLOYMENT = "queuey.local"
UNREACHABLE = "http://127.0.0.1:9"
"""The discard port, where nothing listens."""


class Running(NamedTuple):
    """A deployment, and a job that was submitted before its last start."""

    env: dict[str, str]
    endpoints: dict[str, str]
    folder: Path
    job: str

    def run(self, *arguments: str, stdin: bytes = b"") -> Result:
        """Run a command as a user would."""
        return CliRunner(env=self.env).invoke(charter, ["queuey", *arguments], input=stdin)

    def sample(self, name: str) -> str:
        """A file with a sample in it."""
        path = self.folder / f"{name}.wasm"
        path.write_bytes(binary(name))
        return str(path)


@pytest.fixture(scope="module", params=[DEPLOYMENT, "queuey.redis"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Started without a runner, a job submitted, stopped, and started again with one."""
    folder, data = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("data")
    with up(folder, request.param, "--runners", "0", CHARTER_DATA=str(data)) as first:
        assert set(first.ready["endpoints"]) == {"queue", "queue.grpc", "store"}
        found = Running(first.ready["env"], first.ready["endpoints"], folder, "")
        submitted = found.run("submit", found.sample("words"), stdin=b"it was there before")
        assert submitted.exit_code == 0, submitted.output
        waited = found.run("wait", submitted.stdout.strip(), "--seconds", "0")
        assert (waited.exit_code, waited.stdout) == (3, "pending\n")
        early = found.run("output", submitted.stdout.strip())
        assert (early.exit_code, "no output yet" in early.stderr) == (2, True)
    again = tmp_path_factory.mktemp("again")
    settings = ("--set", "RUN_SECONDS=60", "--set", "SHUTDOWN_GRACE_SECONDS=1")
    with up(again, request.param, *settings, CHARTER_DATA=str(data)) as second:
        env, endpoints = second.ready["env"], second.ready["endpoints"]
        yield Running(env, endpoints, again, submitted.stdout.strip())


@pytest.mark.req("QQ-X12", "QQ-020")
def test_a_job_survives_a_restart_of_the_deployment(running: Running) -> None:
    """The data stays from one run to the next, and the waiting job is run."""
    assert running.run("wait", running.job).stdout == "completed\n"
    assert running.run("output", running.job).stdout_bytes == b"4\n"
    assert running.run("wait", running.job.lower(), "--json").exit_code == 0


@pytest.mark.req("QQ-X12", "QQ-X01")
def test_run_behaves_like_the_binary_itself(running: Running) -> None:
    """Input, output, standard error and exit code are those of the binary; the id of the job comes first."""
    content = bytes(range(256)) * 300
    echoed = running.run("run", running.sample("echo"), stdin=content)
    assert (echoed.exit_code, echoed.stdout_bytes) == (0, content)
    (running.folder / "input").write_bytes(b"from a file")
    counted = running.run("run", running.sample("words"), "--input", str(running.folder / "input"))
    assert (counted.exit_code, counted.stdout_bytes) == (0, b"3\n")
    ended = running.run("run", running.sample("exit"))
    assert (ended.exit_code, "EXITED" in ended.stderr) == (7, True)
    complained = running.run("run", running.sample("complain"))
    first, _, complaint = complained.stderr.partition("\n")
    assert (complained.exit_code, complaint) == (0, "this is not right\n")
    assert first.startswith("job ")
    assert running.run("wait", first.removeprefix("job ")).stdout == "completed\n"
    trapped = running.run("run", running.sample("trap"))
    assert (trapped.exit_code, "failed: TRAPPED" in trapped.stderr) == (1, True)


@pytest.mark.req("QQ-X12", "QQ-X04", "QQ-X07")
def test_submits_with_a_key_and_reports(running: Running) -> None:
    """The same key is the same job; the standard error of a binary can be read."""
    submit = ("submit", running.sample("complain"), "--key", "once")
    first, second = (running.run(*submit).stdout.strip() for _ in range(2))
    assert first == second
    job = json.loads(running.run("submit", running.sample("noop"), "--json").stdout)
    assert (job["status"], job["job_id"] == first) == ("pending", False)
    assert running.run("wait", first).exit_code == 0
    assert running.run("output", first, "--errors").stdout == "this is not right\n"


@pytest.mark.req("QQ-X05", "QQ-X12")
def test_every_method_is_a_command(running: Running) -> None:
    """Every gRPC method of the queue can be called as well."""
    counts = running.run("count-jobs", "--json")
    assert counts.exit_code == 0, counts.output
    assert int(json.loads(counts.stdout)["completed"]) >= 1


@pytest.mark.req("QQ-X12")
def test_wait_exits_with_the_outcome(running: Running) -> None:
    """The exit codes are 0 for completed, 1 for failed, and 3 where the time is over first."""
    codes = {}
    for sample in ("noop", "trap"):
        job = running.run("submit", running.sample(sample)).stdout.strip()
        codes[sample] = running.run("wait", job).exit_code
    endless = running.run("submit", running.sample("sleep")).stdout.strip()
    timed_out = running.run("wait", endless, "--seconds", "0")
    assert running.run("cancel-job", endless).exit_code == 0
    assert (codes, timed_out.exit_code) == ({"noop": 0, "trap": 1}, 3)
    assert timed_out.stdout in ("pending\n", "active\n")
    assert running.run("wait", endless).exit_code == 1


@pytest.mark.req("QQ-X12")
def test_a_queue_is_discovered_or_reported_as_missing(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without addresses the commands use the announced queue; they report it if there is none."""
    monkeypatch.setattr("runtime.cli.location._LOOK_S", 60.0)
    nowhere = Running({"DEPLOYMENT_NAME": running.env["DEPLOYMENT_NAME"]}, {}, running.folder, "")
    found = nowhere.run("wait", "00000000-0000-0000-0000-000000000000")
    assert (found.exit_code, "The queue says no: no job" in found.stderr) == (2, True)
    monkeypatch.setattr("runtime.cli.location._LOOK_S", 0.2)
    for arguments in (("wait", "x"), ("count-jobs",)):
        missing = nowhere.run(*arguments, "--deployment", "nowhere at all")
        assert missing.exit_code == 2
        assert missing.stderr.startswith("Error: No queue of nowhere at all is found on the network.")
        assert ("--queue or QUEUE_URL" if arguments[0] == "wait" else "--address") in missing.stderr


@pytest.mark.req("QQ-X12")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wait", "../../readyz"), "The queue says no"),
        (("wait", "x", "--queue", UNREACHABLE), f"The queue does not answer at {UNREACHABLE}."),
        (("run", "{sample}", "--store", UNREACHABLE), "The store does not answer as it should"),
        (("wait", "x", "--queue", "nowhere"), "'--queue': 'nowhere' is not a URL"),
        (("wait", "x", "--queue", "http://a:b"), "'--queue': 'http://a:b' is not a URL"),
        (("wait", "x", "--seconds", "soon"), "'--seconds': 'soon' is not a number."),
        (("wait", "x", "--seconds", "nan"), "'--seconds': 'nan' is not a finite number."),
        (("wait", "x", "--ca", "{sample}"), "'--ca': "),
        (("wait", "x", "--token", "é"), "'--token': a token has only printable ASCII"),
        (("submit", "/no/such/file"), "does not exist"),
        (("wait", "x", "--queue", "{store}"), "The queue says no"),
    ],
)
def test_an_error_is_one_line(running: Running, arguments: tuple[str, ...], message: str) -> None:
    """The exit code is 2 and there is no traceback."""
    places = {"sample": running.sample("noop"), "store": running.endpoints["store"]}
    completed = running.run(*(each.format(**places) for each in arguments))
    assert completed.exit_code == 2, completed.output
    assert message in completed.stderr
    assert "Traceback" not in completed.output


@pytest.mark.req("QQ-X12")
def test_samples_can_be_saved(running: Running) -> None:
    """They are binaries; without a name they are listed."""
    assert "words" in running.run("sample").stdout.split()
    assert running.run("sample", "words").stdout_bytes == binary("words")
    wrong = running.run("sample", "nope")
    assert (wrong.exit_code, "There is no sample 'nope'" in wrong.stderr) == (2, True)


def test_a_runner_needs_a_store() -> None:
    """A runner without a store has nothing to run."""
    _, deployment = find_deployment(DEPLOYMENT)
    with pytest.raises(WrongReplicas, match="store"):
        with_replicas(deployment, {"store": 0})


@pytest.mark.req("QQ-026")
def test_invalid_settings_stop_the_start() -> None:
    """`up` names them, and nothing is started."""
    completed = CliRunner().invoke(command, ["up", DEPLOYMENT, "--set", "ABANDONED_AGE=x", "--ports", "auto"])
    assert completed.exit_code != 0
    assert "ABANDONED_AGE: must be a number, not 'x'" in completed.output
