"""What a reference page tells of entities in a bucket."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.docs.markdown import code, codes, table
from codegen.language.s3_persistence import KeptInS3


def in_bucket(kept: KeptInS3) -> Iterator[str]:
    """Where it is and how it is kept in order, a sentence each."""
    prefix = f", below what {code(kept.prefix)} says" if kept.prefix else ""
    yield (
        f"It is the object {code(kept.object)} of the bucket {code(kept.bucket)} at {code(kept.endpoint)}, "
        f"region {code(kept.region)}{prefix}. Every change is one conditional write; "
        f"{code(kept.revision)} counts them, so that no two versions are alike."
    )
    if kept.shard:
        digits = "digit" if kept.shard.digits == 1 else f"{kept.shard.digits} digits"
        yield f"{code(kept.shard.field)} is the first hex {digits} of its key."
    if kept.schema_:
        yield f"{code(kept.schema_.field)} is {kept.schema_.value}; fields that nobody knows are kept."
    if kept.keyed_by:
        yield f"Where it has {code(kept.keyed_by)} its key is made from that, so no two have the same."
    if kept.unversioned:
        yield f"Its versions are its history; {code(kept.unversioned)} lets a bucket without versions pass."
    if kept.skew:
        yield f"Clocks may differ by {code(kept.skew)} milliseconds."
    if kept.large:
        values = ", ".join(
            f"{code(field)} ({code(ref)} says where)" for field, ref in kept.large.refs.items()
        )
        over, key = code(kept.large.over), code(kept.large.object)
        yield f"What is longer than {over} bytes is an object {key} of its own: {values}."
    if kept.polls:
        yield (
            f"Who takes leases looks where {code(kept.polls.mode)} says: {code(kept.polls.page)} hints of "
            f"{code(kept.polls.index)} at a time, or {code(kept.polls.scan_page)} objects."
        )
    if kept.repairs:
        yield (
            f"{kept.repairs.by} puts the hints right every {code(kept.repairs.every)} seconds, "
            f"{code(kept.repairs.page)} objects at a time."
        )
        if kept.repairs.mark:
            yield f"{code(kept.repairs.mark)} says when the last of these rounds began that was whole."
    if kept.retires:
        tag = code(f"{kept.retires.tag}={kept.retires.value}")
        yield (
            f"In {codes(kept.retires.in_)} it has the tag {tag}, by which the bucket removes it after "
            f"{code(kept.retires.days)} days."
        )


def hints(kept: KeptInS3) -> str:
    """The small objects that hint at entities."""
    rows = [(code(name), code(row.key), codes(row.in_)) for name, row in kept.indexes.items()]
    return table(("Hints", "Key", "In"), rows)
