"""The preflight check of a bucket, before any work on its entities."""

from __future__ import annotations

from collections.abc import Collection

from runtime.node.settings import SettingsError
from runtime.node.wiring import find_clock_drivers
from runtime.stores.contract import Record
from runtime.stores.s3.bucket.bucket_settings import is_versioned
from runtime.stores.s3.bucket.probe import find_write_problem
from runtime.stores.s3.claims.index_search import INDEX_ONLY
from runtime.stores.s3.client.errors import Away, ObjectError
from runtime.stores.s3.client.responses import NoBucket
from runtime.stores.s3.context import BucketContext
from runtime.stores.store import StoreAway, StoreNotSetUp, StoreUnusable


async def require_fit(context: BucketContext[Record], components: Collection[str]) -> bool:
    """Raise StoreUnusable where the bucket does not support what some components do with its entities.

    Return whether any request was necessary. Contradictory settings raise SettingsError before the first.
    """
    _require_repairs(context, components)
    try:
        requested = [await _require_versions(context), await _require_conditions(context, components)]
    except NoBucket as error:
        raise StoreNotSetUp(str(error)) from None
    except Away as error:
        raise StoreAway(str(error)) from None
    except ObjectError as error:
        raise StoreUnusable(str(error)) from None
    return any(requested)


async def _require_versions(context: BucketContext[Record]) -> bool:
    layout = context.layout
    if layout.unversioned is None:
        return False
    context.writes.large.is_versioned = await is_versioned(context.objects)
    if not context.writes.large.is_versioned and not context.values.get(layout.unversioned):
        raise StoreNotSetUp(
            f"The bucket {context.objects.location.bucket} keeps no versions, so there would be no history. "
            f"Enable its versioning, or set {layout.unversioned}=1 to do without."
        )
    return True


async def _require_conditions(context: BucketContext[Record], components: Collection[str]) -> bool:
    """Probe conditional writes where several processes claim leases, so that each has one owner."""
    if not _takes_leases(context, components):
        return False
    if (problem := await find_write_problem(context.objects)) is not None:
        raise StoreUnusable(problem)
    if context.layout.unversioned is None:
        # Reads and writes do not show the time of the store, which a claim has to know.
        await context.objects.page(context.keys.prefix(None), most=1)
    return True


def _takes_leases(context: BucketContext[Record], components: Collection[str]) -> bool:
    entering = context.rules.entering
    takers = find_clock_drivers(context.lifecycle) | (entering.actors if entering else frozenset())
    return context.lifecycle.lease is not None and not takers.isdisjoint(components)


def _require_repairs(context: BucketContext[Record], components: Collection[str]) -> None:
    """Require that indexes are repaired where claims use only them."""
    values, polls, repairs = context.values, context.layout.polls, context.layout.repairs
    # A process has the variables of its own components; one that only polls may lack the repair interval.
    never = repairs is not None and values.get(repairs.every) == 0
    is_blind = polls is not None and values.get(polls.mode) == INDEX_ONLY
    if polls and repairs and never and is_blind and _takes_leases(context, components):
        raise SettingsError(
            [
                f"{polls.mode}={INDEX_ONLY} with {repairs.every}=0 would lose every "
                f"{context.lifecycle.entity} whose index entry is lost: choose another mode, or enable the "
                "repair of indexes."
            ]
        )
