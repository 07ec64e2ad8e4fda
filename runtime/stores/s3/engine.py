"""The S3 engine of a node: one client for each bucket, shared by its entities."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

from runtime.model.lifecycles import Due, Lifecycle
from runtime.observe.log import Log
from runtime.stores.engine import Engine, EngineContext
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.errors import Refused
from runtime.stores.s3.client.location import BucketLocation, location_of
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.layout import default_layout
from runtime.stores.s3.store import S3Store
from runtime.stores.store import StoreUnusable
from runtime.stores.sweeper import Sweep


class S3Engine(Engine):
    """Entities as objects of a bucket."""

    limits: ClassVar[Mapping[str, str]] = {
        "create.ceiling": "a bucket has no step over several objects, so entities are counted before one is "
        "created: processes that create at the same moment may pass the ceiling by as many as they are.",
        "lease.holder.capacity": "for the same reason, claims of one holder from several processes at the "
        "same moment may pass its capacity; within a process they are made one after the other.",
    }

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._buckets: dict[BucketLocation, Objects] = {}
        self._stores_by_entity: dict[str, Any] = {}
        """The stores by entity, which read from each other."""

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> S3Store[Any]:
        context = self.context
        layout = lifecycle.stored_as(KeptInS3) or default_layout(lifecycle, record)
        location = location_of(layout, context.values)
        if location not in self._buckets:
            try:
                self._buckets[location] = Objects(location, KeySource(context.values))
            except Refused as error:
                raise StoreUnusable(str(error)) from None
        return S3Store(
            context.system,
            lifecycle,
            record,
            self._buckets[location],
            context.world,
            context.metrics,
            context.values,
            layout=layout,
            max_terminal=context.values.get(lifecycle.retained_by or "") or 0,
            stores=self._stores_by_entity,
        )

    async def open(self, log: Log, components: Collection[str]) -> None:
        for store in self.stores.values():
            await store.open(log, components)

    async def close(self) -> None:
        await super().close()
        for bucket in self._buckets.values():
            await bucket.close()

    def sweeps(self, lifecycle: Lifecycle, component: str) -> Iterator[tuple[Due, Sweep]]:
        yield from super().sweeps(lifecycle, component)
        kept = lifecycle.stored_as(KeptInS3)
        repairs = kept.repairs if kept is not None else None
        if repairs is not None and repairs.by == component:
            assert lifecycle.record is not None
            step = self.store(lifecycle, lifecycle.record).repair
            yield Due(None, repairs.by, repairs.every), Sweep(lifecycle.entity, "repair", step)

    def delayed_clocks(self) -> frozenset[str]:
        lifecycles = self.context.system.lifecycles.values()
        kept = [found for each in lifecycles if (found := each.stored_as(KeptInS3)) is not None]
        return frozenset(each.repairs.every for each in kept if each.repairs is not None)
