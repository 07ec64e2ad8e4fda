# mypy: ignore-errors
"""The parcels and their doors."""

from __future__ import annotations

from msgspec import Struct

from generated.locker import errors
from generated.locker.messages import (
    EXPIRED,
    PARCEL_STATE_UNSPECIFIED,
    STORED,
    ExpireParcelRequest,
    ExpireParcelResponse,
    MoveParcelRequest,
    MoveParcelResponse,
    Parcel,
    ParcelSize,
    ParcelState,
    ReadParcelRequest,
    ReadParcelResponse,
    RegisterParcelRequest,
    RegisterParcelResponse,
)
from runtime.call import Call
from runtime.stores.contract import EntityStore, Transitioned
from runtime.stores.store import NoSuchEntity
from runtime.world import World


class ParcelRecord(Struct, frozen=True):
    """One parcel, with the code that opens its door."""

    parcel_id: str
    waybill: str
    size: ParcelSize.ValueType
    duty_paid: bool
    code: str
    state: ParcelState.ValueType = PARCEL_STATE_UNSPECIFIED
    fee_due: bool = False
    door: int = 0
    announced_at_ms: int = 0
    stored_at_ms: int = 0
    closed_at_ms: int = 0


class Vault:
    """Owns the parcels."""

    def __init__(self, parcels: EntityStore[ParcelRecord], world: World) -> None:
        self._parcels = parcels
        self._world = world
        self._by_waybill: dict[str, str] = {}

    async def register_parcel(self, request: RegisterParcelRequest, call: Call) -> RegisterParcelResponse:
        if (known := self._by_waybill.get(request.waybill)) is not None:
            return RegisterParcelResponse(parcel=_parcel(await self._existing(known)), known=True)
        parcel_id = self._by_waybill[request.waybill] = self._world.new_id()
        record = ParcelRecord(parcel_id, request.waybill, request.size, request.duty_paid, request.code)
        created = await self._parcels.create(record, call)
        return RegisterParcelResponse(parcel=_parcel(created.record))

    async def read_parcel(self, request: ReadParcelRequest, _call: Call) -> ReadParcelResponse:
        record = await self._existing(request.parcel_id)
        return ReadParcelResponse(parcel=_parcel(record), code=record.code)

    async def move_parcel(self, request: MoveParcelRequest, call: Call) -> MoveParcelResponse:
        moved = await self._moved(request.parcel_id, request.expected_state, request.next_state, call)
        if moved.applied and request.door:
            await self._parcels.update(request.parcel_id, door=request.door)
        return MoveParcelResponse(moved=moved.applied, state=ParcelState.ValueType(moved.state))

    async def expire_parcel(self, request: ExpireParcelRequest, call: Call) -> ExpireParcelResponse:
        return ExpireParcelResponse(
            moved=(await self._moved(request.parcel_id, STORED, EXPIRED, call)).applied
        )

    async def _moved(self, parcel_id: str, source: int, target: int, call: Call) -> Transitioned:
        edge = self._parcels.edge_between(source, target, call)
        try:
            return await self._parcels.transition(parcel_id, edge.name, call)
        except NoSuchEntity:
            raise errors.ParcelUnknown(parcel_id=parcel_id) from None

    async def _existing(self, parcel_id: str) -> ParcelRecord:
        record = await self._parcels.get(parcel_id)
        if record is None:
            raise errors.ParcelUnknown(parcel_id=parcel_id)
        return record


def _parcel(record: ParcelRecord) -> Parcel:
    return Parcel(
        parcel_id=record.parcel_id,
        state=record.state,
        waybill=record.waybill,
        size=record.size,
        duty_paid=record.duty_paid,
        fee_due=record.fee_due,
        door=record.door,
        announced_at_ms=record.announced_at_ms,
        stored_at_ms=record.stored_at_ms,
        closed_at_ms=record.closed_at_ms,
    )
