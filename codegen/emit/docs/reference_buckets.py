"""Reference text about entities in a bucket."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.docs.markdown import code, codes, format_table
from codegen.language.storage.layouts import KeptInS3


def describe_bucket(store: KeptInS3) -> Iterator[str]:
    """Describe where and how a bucket stores an entity, a sentence each."""
    prefix = f", with the prefix {code(store.prefix)}" if store.prefix else ""
    yield (
        f"It is the object {code(store.object)} of the bucket {code(store.bucket)} at "
        f"{code(store.endpoint)}, region {code(store.region)}{prefix}. Every change is one conditional "
        f"write; {code(store.revision)} counts them, so every version is different."
    )
    if store.shard:
        digits = "digit" if store.shard.digits == 1 else f"{store.shard.digits} digits"
        yield f"{code(store.shard.field)} is the first hex {digits} of its key."
    if store.schema_:
        yield f"{code(store.schema_.field)} is {store.schema_.value}; unknown fields are preserved."
    if store.keyed_by:
        yield f"Where it has {code(store.keyed_by)}, its key is derived from that, so no two have the same."
    if store.unversioned:
        yield f"Its versions are its history; {code(store.unversioned)} allows a bucket without versioning."
    if store.skew:
        yield f"Clocks may differ by {code(store.skew)} milliseconds."
    if store.large:
        values = ", ".join(
            f"{code(field)} (referenced by {code(ref)})" for field, ref in store.large.refs.items()
        )
        over, key = code(store.large.over), code(store.large.object)
        yield f"A value longer than {over} bytes is stored in an object {key} of its own: {values}."
    if store.polls:
        yield (
            f"{code(store.polls.mode)} sets what workers poll for claims: {code(store.polls.page)} hints of "
            f"{code(store.polls.index)} at a time, or {code(store.polls.scan_page)} objects."
        )
    if store.repairs:
        yield (
            f"{store.repairs.by} repairs the hints every {code(store.repairs.every)} seconds, "
            f"{code(store.repairs.page)} objects at a time."
        )
        if store.repairs.mark:
            yield f"{code(store.repairs.mark)} has the start of the last complete repair."
    if store.retires:
        tag = code(f"{store.retires.tag}={store.retires.value}")
        yield (
            f"In {codes(store.retires.in_)} it has the tag {tag}, and a lifecycle rule of the bucket deletes "
            f"it after {code(store.retires.days)} days."
        )


def render_hints(store: KeptInS3) -> str:
    """Render the table of index objects, which hint at entities."""
    rows = [(code(name), code(row.key), codes(row.in_)) for name, row in store.indexes.items()]
    return format_table(("Hints", "Key", "In"), rows)
