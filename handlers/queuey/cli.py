"""What people do with the queue from a shell: submit a binary with its input, wait, and fetch the output."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote

import click
import httpx
from rich.console import Console

from generated.queuey.deployments import LOCAL
from handlers.queuey import samples
from handlers.queuey.blob_client import BlobClient, BlobCorrupt, BlobMissing, BlobRefused, StoreAway, trusted
from runtime.cli.location import find_nodes, sought_node, url_to_place
from runtime.cli.place_types import Authority, Token, Url
from runtime.cli.values import Number

Answer = TypeVar("Answer")

_WAIT_MS = 15_000
_ENDED = ("completed", "failed")
FAILED = 1
"""The exit code where a job failed."""
NOT_ENDED = 3
"""The exit code where a job has not ended when the time is over."""


class Trouble(click.ClickException):
    """A service was not to be found, or did not do what was asked."""

    exit_code = 2


class Queue:
    """The queue over HTTP, as the commands need it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def submit(self, binary: str, given: str | None, key: str | None) -> dict[str, Any]:
        wish = {"binary_addr": binary, "input_addr": given, "idempotency_key": key}
        return await self._ask("POST", "/jobs/create", wish)

    async def ended(self, job_id: str, seconds: float | None) -> dict[str, Any]:
        """The job when it has ended, or when the time is over."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        while True:
            left = _WAIT_MS if until is None else max(0, min(_WAIT_MS, int((until - loop.time()) * 1000)))
            job = await self._ask("GET", f"/jobs/{quote(job_id, safe='')}?wait_ms={left}")
            if job["status"] in _ENDED or (until is not None and loop.time() >= until):
                return job

    async def report(self, job_id: str) -> dict[str, Any]:
        return await self._ask("GET", f"/jobs/{quote(job_id, safe='')}/report")

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        try:
            answer = await self._client.request(method, path, json=body)
        except httpx.HTTPError:
            raise Trouble(f"The queue does not answer at {self._client.base_url}.") from None
        try:
            found: dict[str, Any] = answer.json()
            if not answer.is_success:
                raise Trouble(f"The queue says no: {found['error']['message']}.")
        except (ValueError, LookupError, TypeError):
            raise Trouble(f"What answers is no queue: it says {answer.status_code}.") from None
        return found


def _places(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where the services are."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option(
            "--token",
            envvar=["CLIENT_TOKEN", "CHARTER_TOKEN"],
            type=Token(),
            help="What proves you, where there are tokens; or CLIENT_TOKEN, CHARTER_TOKEN.",
        ),
        click.option(
            "--ca",
            envvar="CHARTER_CA_FILE",
            type=Authority(),
            help="The authority behind the certificates of the services, where they speak TLS.",
        ),
        click.option(
            "--deployment",
            envvar="DEPLOYMENT_NAME",
            metavar="NAME",
            help="Name of the deployment, where the network has several.",
        ),
        click.option(
            "--store", envvar="STORE_URL", type=Url(), help="URL of the store; else it is looked for."
        ),
        click.option(
            "--queue", envvar="QUEUE_URL", type=Url(), help="URL of the queue; else it is looked for."
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("binary", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--input", "given", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Input file."
)
@click.option("--key", help="A second submission under the same key finds the first.")
@_places
def submit(binary: Path, given: Path | None, key: str | None, as_json: bool, **places: str | None) -> None:
    """Submit a WASI binary; what it reads comes from a file or from this command's input."""

    async def work(queue: Queue, store: BlobClient) -> dict[str, Any]:
        return await _submit(queue, store, binary, given, key)

    job = _run(work, places)
    click.echo(json.dumps(job) if as_json else job["job_id"])


@click.command()
@click.argument("job_id")
@click.option("--seconds", type=Number(), help="How long to wait; as long as it takes unless said.")
@_places
def wait(job_id: str, seconds: float | None, as_json: bool, **places: str | None) -> None:
    """Wait until a job has ended.

    The exit code is 0 if it completed, 1 if it failed, and 3 if the time was over first.
    """

    async def work(queue: Queue, _store: BlobClient) -> dict[str, Any]:
        return await queue.ended(job_id, seconds)

    job = _run(work, places, needs_store=False)
    click.echo(json.dumps(job) if as_json else job["status"])
    sys.exit({"completed": 0, "failed": FAILED}.get(job["status"], NOT_ENDED))


@click.command()
@click.argument("job_id")
@click.option("--errors", is_flag=True, help="What it complained of, instead of what it wrote.")
@_places
def output(job_id: str, errors: bool, as_json: bool, **places: str | None) -> None:
    """Write the output of a job that has ended to this command's output."""
    del as_json

    async def work(queue: Queue, store: BlobClient) -> None:
        job, report = await queue.ended(job_id, 0), await queue.report(job_id)
        address = report["stderr_addr"] if errors else job["output_addr"]
        if address is not None:
            await _show(store, address)
        elif job["status"] not in _ENDED:
            raise Trouble(f"The job is {job['status']}; it has no output yet.")

    _run(work, places)


@click.command()
@click.argument("binary", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--input", "given", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Input file."
)
@_places
def run(binary: Path, given: Path | None, as_json: bool, **places: str | None) -> None:
    """Submit a binary, wait for its end, and write its output and its complaints.

    The exit code is the binary's own. The id of the job is the first line on standard error.
    """

    async def work(queue: Queue, store: BlobClient) -> int:
        job = await _submit(queue, store, binary, given, None)
        click.echo(f"job {job['job_id']}", err=True)
        with Console(stderr=True).status(f"job {job['job_id']}"):
            ended, report = await queue.ended(job["job_id"], None), await queue.report(job["job_id"])
        if ended["output_addr"] is not None:
            await _show(store, ended["output_addr"])
        if report["stderr_addr"] is not None:
            await _show(store, report["stderr_addr"], sys.stderr.buffer)
        if ended["status"] == "completed":
            return 0
        click.echo(json.dumps(report) if as_json else f"failed: {report['reason']}", err=True)
        return report["exit_code"] or FAILED

    sys.exit(_run(work, places))


@click.command()
@click.argument("name", required=False)
def sample(name: str | None) -> None:
    """Write a small WASI binary to this command's output; without a NAME, list them."""
    if name is None:
        click.echo("\n".join(samples.names()))
        return
    if name not in samples.names():
        raise click.UsageError(f"There is no sample {name!r}. There are {', '.join(samples.names())}.")
    sys.stdout.buffer.write(samples.binary(name))
    sys.stdout.buffer.flush()


async def _submit(
    queue: Queue, store: BlobClient, binary: Path, given: Path | None, key: str | None
) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile() as kept:
        if given is None and not sys.stdin.isatty():
            kept.write(await asyncio.to_thread(sys.stdin.buffer.read))
            kept.flush()
            given = Path(kept.name)
        address = await store.put(given) if given is not None else None
        return await queue.submit(await store.put(binary), address, key)


async def _show(store: BlobClient, address: str, target: BinaryIO | None = None) -> None:
    """Write content to a stream, standard output unless another is given."""
    target = target or sys.stdout.buffer
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content"
        await store.get(address, path)
        with path.open("rb") as source:
            while piece := source.read(1 << 18):
                target.write(piece)
        target.flush()


def _run(
    work: Callable[[Queue, BlobClient], Awaitable[Answer]],
    places: Mapping[str, str | None],
    *,
    needs_store: bool = True,
) -> Answer:
    async def main() -> Answer:
        urls = await _find_urls(places, ("queue", "store") if needs_store else ("queue",))
        queue_url, store_url = urls["queue"], urls.get("store", urls["queue"])
        token = places["token"]
        headers = {"authorization": f"Bearer {token}"} if token else {}
        tls = ssl.create_default_context(cafile=places["ca"]) if places["ca"] else None
        async with (
            httpx.AsyncClient(
                base_url=queue_url, headers=headers, timeout=30.0, verify=trusted(queue_url, tls)
            ) as client,
            BlobClient(store_url, token, tls) as store,
        ):
            return await work(Queue(client), store)

    try:
        return asyncio.run(main())
    except BlobMissing as missing:
        raise Trouble(f"The store has nothing under {missing}.") from None
    except BlobCorrupt as corrupt:
        raise Trouble(f"What the store has under {corrupt} is not its content any more.") from None
    except StoreAway:
        raise Trouble("The store does not answer as it should: check --store or STORE_URL.") from None
    except BlobRefused as refused:
        raise Trouble(f"The store refuses: {refused}.") from None


async def _find_urls(places: Mapping[str, str | None], needed: Sequence[str]) -> dict[str, str]:
    """Where the needed services are: as given, or as nodes of one deployment announce them."""
    given = {node: url for node in needed if (url := places[node])}
    missing = [node for node in needed if node not in given]
    if not missing:
        return given
    name = places["deployment"]
    sought = {node: sought_node(LOCAL.nodes[node], "http_port", {}) for node in missing}
    if not name:
        # What is given decides which deployment is meant.
        known = {node: {"http_port": url_to_place(url)} for node, url in given.items()}
        sought |= {node: sought_node(LOCAL.nodes[node], "http_port", known[node]) for node in given}
    options = " and ".join(f"--{node} or {node.upper()}_URL" for node in missing)
    offers = await find_nodes(sought, name, options, "DEPLOYMENT_NAME")
    found = {
        node: f"http://{offers[node].address}:{offers[node].properties['http_port']}" for node in missing
    }
    return given | found


COMMANDS: dict[str, click.Command] = {
    "run": run,
    "submit": submit,
    "wait": wait,
    "output": output,
    "sample": sample,
}
