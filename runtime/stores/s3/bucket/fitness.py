"""What a bucket has to be before anybody works with what is in it."""

from __future__ import annotations

from collections.abc import Collection

from runtime.node.settings import SettingsError
from runtime.node.wiring import find_clock_drivers
from runtime.stores.s3.bucket.bucket_settings import is_versioned
from runtime.stores.s3.bucket.probe import unfit
from runtime.stores.s3.claims.polling import INDEX_ONLY
from runtime.stores.s3.client.errors import Away, ObjectError
from runtime.stores.s3.client.responses import NoBucket
from runtime.stores.s3.entities import Entities
from runtime.stores.store import Record, StoreAway, StoreNotSetUp, StoreUnusable


async def require_fit(entities: Entities[Record], components: Collection[str]) -> bool:
    """Raises StoreUnusable where the bucket is not fit for what some components do with entities.

    Tells whether the bucket was asked at all: some entities want nothing of it that could be missing.
    Settings that contradict each other raise SettingsError before it is.
    """
    _require_repairs(entities, components)
    try:
        asked = [await _require_versions(entities), await _require_conditions(entities, components)]
    except NoBucket as error:
        raise StoreNotSetUp(str(error)) from None
    except Away as error:
        raise StoreAway(str(error)) from None
    except ObjectError as error:
        raise StoreUnusable(str(error)) from None
    return any(asked)


async def _require_versions(entities: Entities[Record]) -> bool:
    kept = entities.kept
    if kept.unversioned is None:
        return False
    entities.guarded.apart.is_versioned = await is_versioned(entities.objects)
    if not entities.guarded.apart.is_versioned and not entities.values.get(kept.unversioned):
        raise StoreNotSetUp(
            f"The bucket {entities.objects.place.bucket} keeps no versions, so nothing would be known of the "
            f"past. Switch its versioning on, or set {kept.unversioned}=1 to do without."
        )
    return True


async def _require_conditions(entities: Entities[Record], components: Collection[str]) -> bool:
    """Those who take entities from each other must know that only one of them gets each."""
    if not _takes_leases(entities, components):
        return False
    if (problem := await unfit(entities.objects)) is not None:
        raise StoreUnusable(problem)
    if entities.kept.unversioned is None:
        # Reads and writes do not tell the time of the store, which has to be known before anything is taken.
        await entities.objects.page(entities.keys.prefix(None), most=1)
    return True


def _takes_leases(entities: Entities[Record], components: Collection[str]) -> bool:
    takers = entities.changes.entering.actors | find_clock_drivers(entities.lifecycle)
    return entities.lifecycle.lease is not None and not takers.isdisjoint(components)


def _require_repairs(entities: Entities[Record], components: Collection[str]) -> None:
    """Whoever looks at the index alone needs somebody who repairs it."""
    values, polls, repairs = entities.values, entities.kept.polls, entities.kept.repairs
    # A process knows the variables of what it does; who only polls need not know how often others repair.
    never = repairs is not None and values.get(repairs.every) == 0
    is_blind = polls is not None and values.get(polls.mode) == INDEX_ONLY
    if polls and repairs and never and is_blind and _takes_leases(entities, components):
        raise SettingsError(
            [
                f"{polls.mode}={INDEX_ONLY} with {repairs.every}=0 would lose every "
                f"{entities.lifecycle.entity} whose index entry is lost. Choose another mode, or let indexes "
                "be repaired."
            ]
        )
