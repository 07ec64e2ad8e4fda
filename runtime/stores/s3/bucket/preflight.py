"""The check of a bucket before anything is done with what is in it."""

from __future__ import annotations

from collections.abc import Collection

from runtime.node.settings import SettingsError
from runtime.node.wiring import find_clock_drivers
from runtime.stores.contract import Record
from runtime.stores.s3.bucket.bucket_settings import is_versioned
from runtime.stores.s3.bucket.probe import unfit
from runtime.stores.s3.claims.index_search import INDEX_ONLY
from runtime.stores.s3.client.errors import Away, ObjectError
from runtime.stores.s3.client.responses import NoBucket
from runtime.stores.s3.context import BucketContext
from runtime.stores.store import StoreAway, StoreNotSetUp, StoreUnusable


async def require_fit(context: BucketContext[Record], components: Collection[str]) -> bool:
    """Raises StoreUnusable where the bucket is not fit for what some components do with context.

    Tells whether the bucket was asked at all: some context want nothing of it that could be missing.
    Settings that contradict each other raise SettingsError before it is.
    """
    _require_repairs(context, components)
    try:
        asked = [await _require_versions(context), await _require_conditions(context, components)]
    except NoBucket as error:
        raise StoreNotSetUp(str(error)) from None
    except Away as error:
        raise StoreAway(str(error)) from None
    except ObjectError as error:
        raise StoreUnusable(str(error)) from None
    return any(asked)


async def _require_versions(context: BucketContext[Record]) -> bool:
    layout = context.layout
    if layout.unversioned is None:
        return False
    context.writes.large.is_versioned = await is_versioned(context.objects)
    if not context.writes.large.is_versioned and not context.values.get(layout.unversioned):
        raise StoreNotSetUp(
            f"The bucket {context.objects.place.bucket} keeps no versions, so nothing would be known of the "
            f"past. Switch its versioning on, or set {layout.unversioned}=1 to do without."
        )
    return True


async def _require_conditions(context: BucketContext[Record], components: Collection[str]) -> bool:
    """Those who take context from each other must know that only one of them gets each."""
    if not _takes_leases(context, components):
        return False
    if (problem := await unfit(context.objects)) is not None:
        raise StoreUnusable(problem)
    if context.layout.unversioned is None:
        # Reads and writes do not tell the time of the store, which has to be known before anything is taken.
        await context.objects.page(context.keys.prefix(None), most=1)
    return True


def _takes_leases(context: BucketContext[Record], components: Collection[str]) -> bool:
    entering = context.rules.entering
    takers = find_clock_drivers(context.lifecycle) | (entering.actors if entering else frozenset())
    return context.lifecycle.lease is not None and not takers.isdisjoint(components)


def _require_repairs(context: BucketContext[Record], components: Collection[str]) -> None:
    """Whoever looks at the index alone needs somebody who repairs it."""
    values, polls, repairs = context.values, context.layout.polls, context.layout.repairs
    # A process knows the variables of what it does; who only polls need not know how often others repair.
    never = repairs is not None and values.get(repairs.every) == 0
    is_blind = polls is not None and values.get(polls.mode) == INDEX_ONLY
    if polls and repairs and never and is_blind and _takes_leases(context, components):
        raise SettingsError(
            [
                f"{polls.mode}={INDEX_ONLY} with {repairs.every}=0 would lose every "
                f"{context.lifecycle.entity} whose index entry is lost. Choose another mode, or let indexes "
                "be repaired."
            ]
        )
