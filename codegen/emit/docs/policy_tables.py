"""The tables of a reference page that tell of the policies behind methods, fields and nodes."""

from __future__ import annotations

from codegen.emit.docs.markdown import code, codes, duration, prose, table
from codegen.source.spec import Spec


def policies(spec: Spec) -> dict[str, str]:
    """A table by its title, for each kind of policy that the spec has."""
    found = {
        "Retry profiles": _retry(spec),
        "Call modes": _calls(spec),
        "Pagination": _pagination(spec),
        "Limits": _limits(spec),
        "Retention": _retention(spec),
        "Connections and shutdown": _connections(spec),
    }
    return {title: text for title, text in found.items() if text}


def _retry(spec: Spec) -> str:
    rows = [
        (
            code(name),
            codes(row.codes),
            str(row.attempts),
            f"{duration(row.initial_ms)}, times {row.multiplier:g}, up to {duration(row.max_ms)}",
            row.jitter,
            prose(row.doc),
        )
        for name, row in spec.system.policies.retry.items()
    ]
    return table(("Profile", "Codes", "Attempts", "Backoff", "Jitter", "Meaning"), rows)


def _calls(spec: Spec) -> str:
    rows = [
        (code(name), row.deadline, str(row.attempts or "by method"), prose(row.doc))
        for name, row in spec.system.policies.calls.items()
    ]
    return table(("Mode", "Deadline", "Attempts", "Meaning"), rows)


def _pagination(spec: Spec) -> str:
    rows = [
        (code(name), str(row.default_size), str(row.max_size), str(row.max_token), prose(row.doc))
        for name, row in spec.system.policies.pagination.items()
    ]
    return table(("Policy", "Default size", "Largest size", "Largest token", "Meaning"), rows)


def _limits(spec: Spec) -> str:
    rows = [
        (code(name), f"{row.value} {row.unit}", prose(row.doc))
        for name, row in spec.system.policies.limits.items()
    ]
    return table(("Limit", "Value", "Meaning"), rows)


def _retention(spec: Spec) -> str:
    rows = [
        (code(name), row.of, f"{code(row.bound)} {row.unit}", f"the {row.evicts} first")
        for name, row in spec.system.policies.retention.items()
    ]
    return table(("What", "Of which", "Bound", "Forgotten"), rows)


def _connections(spec: Spec) -> str:
    keepalive = spec.system.policies.keepalive
    rows = [
        (
            "Ping every",
            duration(keepalive.ping_every_ms) + (", also when idle" if keepalive.idle_pings else ""),
        ),
        ("Ping answered within", duration(keepalive.ping_timeout_ms)),
        ("Shortest time between pings accepted", duration(keepalive.shortest_ping_accepted_ms)),
        (
            "Age at which the client of a connection is asked for a new one",
            duration(keepalive.connection_age_ms),
        ),
        ("Grace for running calls at shutdown", duration(spec.system.policies.shutdown.grace_ms)),
    ]
    return table(("What", "Value"), rows)
