"""What a bucket has to be before anybody works with what is in it."""

from __future__ import annotations

from collections.abc import Collection

from runtime.s3.answers import NoBucket
from runtime.s3.bucket import is_versioned
from runtime.s3.entities import Entities
from runtime.s3.errors import ObjectError
from runtime.s3.polling import INDEX_ONLY
from runtime.s3.probe import unfit
from runtime.store import Record, StoreNotSetUp, StoreUnusable
from runtime.wiring import clocked


async def require_fit(entities: Entities[Record], components: Collection[str]) -> bool:
    """Raises StoreUnusable where the bucket is not fit for what some components do with entities.

    Tells whether the bucket was asked at all: some entities want nothing of it that could be missing.
    """
    try:
        asked = [await _require_versions(entities), await _require_conditions(entities, components)]
    except NoBucket as error:
        raise StoreNotSetUp(str(error)) from None
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
    kept, lifecycle, values = entities.kept, entities.lifecycle, entities.values
    takers = entities.changes.entering.actors | clocked(lifecycle)
    if lifecycle.lease is None or takers.isdisjoint(components):
        return False
    polls, repairs = kept.polls, kept.repairs
    # A process knows the variables of what it does; who only polls need not know how often others repair.
    never = repairs is not None and values.get(repairs.every) == 0
    if polls and repairs and never and values.get(polls.mode) == INDEX_ONLY:
        raise StoreUnusable(
            f"{polls.mode}={INDEX_ONLY} with {repairs.every}=0 would lose every {lifecycle.entity} whose "
            "index entry is lost. Choose another mode, or let indexes be repaired."
        )
    if (problem := await unfit(entities.objects)) is not None:
        raise StoreUnusable(problem)
    return True
