# mypy: ignore-errors
"""What people may ask of the locker: each wish as steps of the vault behind it."""

from __future__ import annotations

from generated.locker import errors
from generated.locker.events import CODE_REFUSED, DOOR_OPENED
from generated.locker.messages import (
    COLLECTED,
    EXPECTED,
    EXPIRED,
    RETURNED,
    STORED,
    AnnounceParcelRequest,
    AnnounceParcelResponse,
    CollectParcelRequest,
    CollectParcelResponse,
    ExpireParcelRequest,
    FindParcelRequest,
    FindParcelResponse,
    MoveParcelRequest,
    Parcel,
    ParcelState,
    ReadParcelRequest,
    RegisterParcelRequest,
    ReturnParcelRequest,
    ReturnParcelResponse,
    StoreParcelRequest,
    StoreParcelResponse,
)
from generated.locker.services import VaultService
from generated.locker.settings import DeskSettings
from runtime.call import Call


class Desk:
    """Keeps nothing."""

    def __init__(self, vault: VaultService, settings: DeskSettings) -> None:
        self._vault = vault
        self._site = settings.locker_site

    async def announce_parcel(self, request: AnnounceParcelRequest, call: Call) -> AnnounceParcelResponse:
        registered = await self._vault.register_parcel(
            RegisterParcelRequest(
                waybill=request.waybill,
                size=request.size,
                items=request.items,
                duty_paid=request.duty_paid,
                code=request.code,
            ),
            call,
        )
        return AnnounceParcelResponse(parcel=registered.parcel, known=registered.known)

    async def store_parcel(self, request: StoreParcelRequest, call: Call) -> StoreParcelResponse:
        await self._move(request.parcel_id, EXPECTED, STORED, call, door=request.door)
        return StoreParcelResponse(parcel=await self._read(request.parcel_id, call))

    async def collect_parcel(self, request: CollectParcelRequest, call: Call) -> CollectParcelResponse:
        found = await self._vault.read_parcel(ReadParcelRequest(parcel_id=request.parcel_id), call)
        if found.code != request.code:
            call.tell(CODE_REFUSED, f"wrong code at {self._site}")
            raise errors.CodeWrong(parcel_id=request.parcel_id)
        if not found.parcel.duty_paid:
            raise errors.DutyUnpaid(parcel_id=request.parcel_id)
        await self._move(request.parcel_id, STORED, COLLECTED, call)
        call.tell(DOOR_OPENED, f"door {found.parcel.door} at {self._site}")
        return CollectParcelResponse(door=found.parcel.door)

    async def return_parcel(self, request: ReturnParcelRequest, call: Call) -> ReturnParcelResponse:
        # The permission of the desk makes this a call with a deadline of its own.
        await self._vault.expire_parcel(ExpireParcelRequest(parcel_id=request.parcel_id, charge=True), call)
        await self._move(request.parcel_id, EXPIRED, RETURNED, call)
        return ReturnParcelResponse(parcel=await self._read(request.parcel_id, call))

    async def find_parcel(self, request: FindParcelRequest, call: Call) -> FindParcelResponse:
        return FindParcelResponse(parcel=await self._read(request.parcel_id, call))

    async def _read(self, parcel_id: str, call: Call) -> Parcel:
        return (await self._vault.read_parcel(ReadParcelRequest(parcel_id=parcel_id), call)).parcel

    async def _move(
        self,
        parcel_id: str,
        source: ParcelState.ValueType,
        target: ParcelState.ValueType,
        call: Call,
        door: int = 0,
    ) -> None:
        request = MoveParcelRequest(parcel_id=parcel_id, expected_state=source, next_state=target, door=door)
        moved = await self._vault.move_parcel(request, call)
        if not moved.moved:
            raise errors.ParcelElsewhere(parcel_id=parcel_id, state=ParcelState.Name(moved.state))
