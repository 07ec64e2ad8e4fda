"""A system that the engine has never heard of, served for real: its spec, its handlers, and nothing else."""

from __future__ import annotations

import importlib
import itertools
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import generated
import handlers
from codegen.__main__ import main as codegen
from runtime.call.conditions import Condition, Failure
from runtime.client import Client
from runtime.launch import Launched, launched
from runtime.node.systems import system_names
from tests.support.eventually import eventually
from tests.support.specs.patient_spec import extend_timeouts
from tests.support.taskqueue.logs import lines

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[3]
SPECS = ROOT / "tests/specs"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
waybills = (f"DE{number:09}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with the locker alone, generated from its spec, with its handlers; first on the path."""
    root = tmp_path_factory.mktemp("locker")
    shutil.copytree(SPECS / "locker", root / "spec/locker")
    services = root / "spec/locker/services.yaml"
    services.write_text(extend_timeouts(services.read_text(encoding="utf-8")), encoding="utf-8")
    assert codegen(["generate", "--root", str(root)]) == 0
    shutil.copytree(SPECS / "locker_handlers", root / "handlers/locker")
    (root / "handlers/__init__.py").touch()
    with pytest.MonkeyPatch.context() as patch:
        # For the nodes, whose Python must not look into the folder that it is started in.
        patch.setenv("PYTHONPATH", os.pathsep.join((str(root), str(ROOT))))
        patch.setenv("PYTHONSAFEPATH", "1")
        # And for this process, which has loaded the other systems.
        patch.setattr(generated, "__path__", [str(root / "generated")])
        patch.setattr(handlers, "__path__", [str(root / "handlers")])
        system_names.cache_clear()
        yield root
    system_names.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("generated.locker", "handlers.locker"))]:
        del sys.modules[name]


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[("branch", True), ("branch", False), ("kiosk", False)],
    ids=["branch-tls", "branch-tokens", "kiosk-tokens"],
)
async def locker(root: Path, request: pytest.FixtureRequest) -> AsyncIterator[Launched]:
    """One of the deployments, brought up."""
    name, tls = request.param
    async with launched(
        f"locker.{name}", ports="auto", tls=tls, settings={"LOCKER_SITE": "corner"}
    ) as running:
        yield running


class Person:
    """Someone at the desk."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._messages = importlib.import_module("generated.locker.messages")

    async def ask(self, method: str, service: str = "DeskService", **fields: Any) -> Any:
        request = getattr(self._messages, f"{method}Request")(**fields)
        attribute = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in method)[1:]
        return await getattr(self._client.service(service), attribute)(request, self._client.call())

    async def announce(self, **fields: Any) -> Any:
        """Announce a new parcel."""
        wanted = {
            "waybill": next(waybills),
            "items": {"book": self.item()},
            "code": "123456",
            "duty_paid": True,
        }
        return (await self.ask("AnnounceParcel", **{**wanted, **fields})).parcel

    async def announce_and_store(self, **fields: Any) -> Any:
        """Announce a parcel and store it behind a door."""
        parcel = await self.announce(**fields)
        return (await self.ask("StoreParcel", parcel_id=parcel.parcel_id, door=7)).parcel

    def item(self, **fields: Any) -> Any:
        return self._messages.Item(**{"grams": 300, **fields})


@pytest_asyncio.fixture(loop_scope="module")
async def courier(locker: Launched) -> AsyncIterator[Person]:
    async with locker.client("courier") as client:
        yield Person(client)


@pytest_asyncio.fixture(loop_scope="module")
async def recipient(locker: Launched) -> AsyncIterator[Person]:
    async with locker.client() as client:
        yield Person(client)


@contextmanager
def expect_refusal(code: str, condition: str | None = None, words: str = "") -> Iterator[None]:
    """Expects a call to fail, with a condition of the spec if one is named."""
    with pytest.raises(Failure) as caught:
        yield
    failure = caught.value
    assert failure.grpc == code, failure.message
    assert condition is None or (isinstance(failure, Condition) and failure.code == condition)
    assert words in failure.message


def states(locker: Launched) -> Any:
    return importlib.import_module("generated.locker.messages").ParcelState


async def test_a_parcel_is_announced_stored_and_collected(
    locker: Launched, courier: Person, recipient: Person
) -> None:
    """Two principals, two components and three states: the transitions of most parcels."""
    parcel = await courier.announce_and_store()
    state = states(locker)
    assert (parcel.state, parcel.door, parcel.size) == (state.STORED, 7, 1)
    assert 0 < parcel.announced_at_ms <= parcel.stored_at_ms
    assert (await recipient.ask("CollectParcel", parcel_id=parcel.parcel_id, code="123456")).door == 7
    collected = (await recipient.ask("FindParcel", parcel_id=parcel.parcel_id)).parcel
    assert collected.state == state.COLLECTED
    assert collected.closed_at_ms >= parcel.stored_at_ms
    again = await courier.ask(
        "AnnounceParcel", waybill=parcel.waybill, items={"a": courier.item()}, code="000000"
    )
    assert (again.known, again.parcel) == (True, collected)


async def test_an_uncollected_parcel_is_returned(locker: Launched, courier: Person) -> None:
    """Two steps under other rules of the same lifecycle, one of which sets a field."""
    parcel = await courier.announce_and_store()
    back = (await courier.ask("ReturnParcel", parcel_id=parcel.parcel_id)).parcel
    assert (back.state, back.fee_due) == (states(locker).RETURNED, True)
    with expect_refusal("FAILED_PRECONDITION", "parcel_elsewhere", "RETURNED"):
        await courier.ask("StoreParcel", parcel_id=parcel.parcel_id, door=1)


async def test_requests_are_checked_by_the_rules_of_the_spec(courier: Person) -> None:
    """Patterns, ranges, lengths and nested rules, under the name that this spec has for the condition."""
    with expect_refusal("INVALID_ARGUMENT", "form_invalid", "waybill"):
        await courier.announce(waybill="X1")
    with expect_refusal("INVALID_ARGUMENT", "form_invalid", "items['lead'].grams"):
        await courier.announce(items={"lead": courier.item(grams=30_001)})
    with expect_refusal("INVALID_ARGUMENT", "form_invalid", "photo"):
        await courier.announce(photo=b"x" * 65_537)
    with expect_refusal("INVALID_ARGUMENT", "form_invalid", "door"):
        await courier.ask("StoreParcel", parcel_id=UNKNOWN, door=25)


async def test_the_caller_matrix_separates_principals(courier: Person, recipient: Person) -> None:
    """A token proves the courier, who may not collect; a caller without one may not announce."""
    parcel = await courier.announce_and_store()
    with expect_refusal("PERMISSION_DENIED", "not_allowed", "courier"):
        await courier.ask("CollectParcel", parcel_id=parcel.parcel_id, code="123456")
    with expect_refusal("UNAUTHENTICATED", "stranger", "AnnounceParcel"):
        await recipient.announce()


async def test_handlers_raise_the_conditions_of_their_spec(
    locker: Launched, courier: Person, recipient: Person
) -> None:
    """Each has its own code, whether of the desk or through it of the vault; events are logged."""
    parcel = await courier.announce_and_store(duty_paid=False)
    with expect_refusal("PERMISSION_DENIED", "code_wrong"):
        await recipient.ask("CollectParcel", parcel_id=parcel.parcel_id, code="654321")
    with expect_refusal("FAILED_PRECONDITION", "duty_unpaid"):
        await recipient.ask("CollectParcel", parcel_id=parcel.parcel_id, code="123456")
    with expect_refusal("NOT_FOUND", "parcel_unknown"):
        await recipient.ask("FindParcel", parcel_id=UNKNOWN)

    async def find_messages() -> list[str]:
        found = [line for each in locker.processes.values() for line in lines(each, "code_refused")]
        return [line["message"] for line in found if line["parcel_id"] == parcel.parcel_id]

    assert await eventually(find_messages, what="a line about the wrong code") == ["wrong code at corner"]


async def test_the_vault_is_for_the_desk_alone(locker: Launched, courier: Person, recipient: Person) -> None:
    """Where it can be reached at all: conditions of a permission, the lifecycle and its flags."""
    parcel = await courier.announce_and_store(duty_paid=False)
    state, named = states(locker), {"parcel_id": parcel.parcel_id}
    if "vault" not in locker.endpoints:
        async with locker.client("desk") as client:
            with expect_refusal("UNIMPLEMENTED"):
                await Person(client).ask("ReadParcel", "VaultService", **named)
        return
    async with locker.client("desk") as client:
        desk = Person(client)
        with expect_refusal("PERMISSION_DENIED", "not_allowed", "charge"):
            await desk.ask("ExpireParcel", "VaultService", charge=False, **named)
        with expect_refusal("FAILED_PRECONDITION", "way_closed", "EXPECTED to RETURNED"):
            await desk.ask("MoveParcel", "VaultService", expected_state=1, next_state=6, **named)
        expiring = {"expected_state": state.STORED, "next_state": state.EXPIRED}
        with expect_refusal(
            "PERMISSION_DENIED", "not_allowed", "goes through VaultService.ExpireParcel alone"
        ):
            await desk.ask("MoveParcel", "VaultService", **expiring, **named)
        unpaid = {"expected_state": state.STORED, "next_state": state.COLLECTED}
        response = await desk.ask("MoveParcel", "VaultService", **unpaid, **named)
        assert (response.moved, response.state) == (False, state.STORED)
    async with locker.client("vault") as client:
        with expect_refusal("PERMISSION_DENIED", "not_allowed", "vault"):
            await Person(client).ask("ReadParcel", "VaultService", **named)


async def test_a_vault_that_is_down_is_a_condition_of_the_spec(locker: Launched, recipient: Person) -> None:
    """Other components that do not answer have a condition of their own in each spec, until they are back."""
    if "vault" in locker.endpoints:
        await locker.stop("vault")
        with expect_refusal("UNAVAILABLE", "vault_closed", "VaultService does not answer"):
            await recipient.ask("FindParcel", parcel_id=UNKNOWN)
        await locker.restart("vault")

    async def find_code() -> str:
        with pytest.raises(Failure) as caught:
            await recipient.ask("FindParcel", parcel_id=UNKNOWN)
        return caught.value.grpc

    await eventually(find_code, wanted=lambda code: code == "NOT_FOUND", what="an answer of the vault")
