"""Two deployments on one network: clients and runners use the nodes of one of them, and never mix them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from handlers.queuey.samples import binary
from runtime.cli import charter
from tests.support.queuey.processes import PATIENCE_S, Process, Works

BRISK = {"MDNS_ENABLED": "true", "RUN_SECONDS": "60"}
LOOKS = {"QUEUE_ADDR": "", "STORE_URL": ""}


class Town:
    """Two deployments by their names, each with a runner that found it by its name alone."""

    def __init__(self, folder: Path, deployments: dict[str, Works]) -> None:
        self.folder = folder
        self.deployments = deployments
        self.sample = str(folder / "echo.wasm")
        Path(self.sample).write_bytes(binary("echo"))

    def run(self, *arguments: str, env: dict[str, str] | None = None, given: bytes = b"") -> Result:
        """A command of a user who has set nothing but what is given."""
        return CliRunner(env=env or {}).invoke(charter, ["queuey", *arguments], input=given)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folders = [tmp_path_factory.mktemp(each) for each in ("one", "other")]
    names = [f"{each.name}-{uuid4().hex[:8]}" for each in folders]
    first, second = (
        Works(folder, **BRISK, DEPLOYMENT_NAME=name) for folder, name in zip(folders, names, strict=True)
    )
    with first, second:
        for each in (first, second):
            each.runner("seeker", **LOOKS).wait()
        yield Town(folders[0], {names[0]: first, names[1]: second})


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine answers late; nothing here waits for what is not there."""
    monkeypatch.setattr("runtime.cli.location._LOOK_S", PATIENCE_S)


def found(runner: Process) -> str:
    return " ".join(each["message"] for each in runner.events("found_upstream"))


@pytest.mark.req("QQ-055", "QQ-X01", "QQ-X12")
def test_each_run_stays_in_the_deployment_that_it_chose(town: Town) -> None:
    """Four runs, two in each, by the option and by the variable: each is done by the runner of its own."""
    for name, works in town.deployments.items():
        for chosen, option in (({"DEPLOYMENT_NAME": name}, ()), ({}, ("--deployment", name))):
            content = f"{name} {bool(chosen)}".encode()
            done = town.run("run", town.sample, *option, env=chosen, given=content)
            assert (done.exit_code, done.stdout_bytes) == (0, content), done.stderr
            job = works.job(done.stderr.split()[1])
            assert works.content(job["output_addr"]) == content
            assert town.run("wait", job["job_id"], *option, env=chosen).stdout == "completed\n"


@pytest.mark.req("QQ-055", "QQ-X01")
def test_a_runner_finds_queue_and_store_of_its_own_deployment(town: Town) -> None:
    for name, works in town.deployments.items():
        message = found(works.runners[0])
        assert f"127.0.0.1:{works.queue.ports['port']}: " in message and works.store.url in message
        assert message.count(f" of {name} ") == 2


@pytest.mark.req("QQ-X12")
def test_without_a_choice_a_command_says_how_to_choose(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what there is and ends with 2; nothing is submitted anywhere."""
    monkeypatch.setattr("runtime.cli.location._SETTLE_S", 5.0)
    before = [works.count() for works in town.deployments.values()]
    for arguments in (("submit", town.sample), ("wait", "x"), ("count-jobs",)):
        done = town.run(*arguments)
        assert done.exit_code == 2, done.output
        assert "Several deployments are on the network: " in done.stderr
        assert "Choose by --deployment or DEPLOYMENT_NAME" in done.stderr
    assert [works.count() for works in town.deployments.values()] == before


@pytest.mark.req("QQ-X01")
def test_without_a_choice_a_runner_refuses_to_start(town: Town) -> None:
    """It ends with 2, as it does for any other wrong setting, and takes nothing."""
    lost = Process(town.folder, "runner", "lost", {**BRISK, **LOOKS, "RUNNER_ID": "lost"}).begin()
    assert lost.process is not None
    assert lost.process.wait(PATIENCE_S) == 2
    said = lost.events("settings_invalid")[0]["message"]
    assert "Several deployments are on the network: " in said
    assert "Choose by DEPLOYMENT_NAME or QUEUE_ADDR and STORE_URL" in said


@pytest.mark.req("QQ-X01", "QQ-X12")
def test_an_address_that_is_given_decides_where_the_rest_is(town: Town) -> None:
    """The store is that of the queue, for a runner and for a client."""
    for works in town.deployments.values():
        half = works.runner("half", STORE_URL="", DEPLOYMENT_NAME="").wait()
        assert works.store.url in found(half)
        done = town.run("run", town.sample, env={"QUEUE_URL": works.queue.url}, given=b"half")
        assert (done.exit_code, done.stdout_bytes) == (0, b"half"), done.stderr
        works.runners.remove(half)
        half.kill()


@pytest.mark.req("QQ-X05", "QQ-X12")
def test_every_method_finds_the_queue_as_the_other_commands_do(town: Town) -> None:
    """By the name of the deployment, and by the URL of the queue."""
    for name, works in town.deployments.items():
        job = works.submit("noop")
        for env in ({"DEPLOYMENT_NAME": name}, {"QUEUE_URL": works.queue.url}):
            shown = town.run("get-job", job, "--json", env=env)
            assert (shown.exit_code, job in shown.stdout) == (0, True), shown.stderr
