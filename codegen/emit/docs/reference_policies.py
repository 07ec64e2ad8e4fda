"""Reference tables about policies of methods, fields and nodes."""

from __future__ import annotations

from codegen.emit.docs.markdown import code, codes, format_duration, format_table, prose
from codegen.source.spec import Spec


def render_policies(spec: Spec) -> dict[str, str]:
    """Render a table for each kind of policy that the spec has, by its title."""
    found = {
        "Retry profiles": _render_retry(spec),
        "Call modes": _render_call_modes(spec),
        "Pagination": _render_pagination(spec),
        "Limits": _render_limits(spec),
        "Retention": _render_retention(spec),
        "Connections and shutdown": _render_connections(spec),
    }
    return {title: text for title, text in found.items() if text}


def _render_retry(spec: Spec) -> str:
    rows = [
        (
            code(name),
            codes(row.codes),
            str(row.attempts),
            f"{format_duration(row.initial_ms)}, times {row.multiplier:g},"
            f" up to {format_duration(row.max_ms)}",
            row.jitter,
            prose(row.doc),
        )
        for name, row in spec.system.policies.retry.items()
    ]
    return format_table(("Profile", "Codes", "Attempts", "Backoff", "Jitter", "Meaning"), rows)


def _render_call_modes(spec: Spec) -> str:
    rows = [
        (code(name), row.deadline, str(row.attempts or "by method"), prose(row.doc))
        for name, row in spec.system.policies.calls.items()
    ]
    return format_table(("Mode", "Deadline", "Attempts", "Meaning"), rows)


def _render_pagination(spec: Spec) -> str:
    rows = [
        (code(name), str(row.default_size), str(row.max_size), str(row.max_token), prose(row.doc))
        for name, row in spec.system.policies.pagination.items()
    ]
    return format_table(("Policy", "Default size", "Largest size", "Largest token", "Meaning"), rows)


def _render_limits(spec: Spec) -> str:
    rows = [
        (code(name), f"{row.value} {row.unit}", prose(row.doc))
        for name, row in spec.system.policies.limits.items()
    ]
    return format_table(("Limit", "Value", "Meaning"), rows)


def _render_retention(spec: Spec) -> str:
    rows = [
        (code(name), row.of, f"{code(row.bound)} {row.unit}", f"the {row.evicts} first")
        for name, row in spec.system.policies.retention.items()
    ]
    return format_table(("Retained", "Of which", "Bound", "Evicted"), rows)


def _render_connections(spec: Spec) -> str:
    keepalive = spec.system.policies.keepalive
    rows = [
        (
            "Ping every",
            format_duration(keepalive.ping_every_ms) + (", also when idle" if keepalive.idle_pings else ""),
        ),
        ("Ping timeout", format_duration(keepalive.ping_timeout_ms)),
        ("Shortest ping interval accepted", format_duration(keepalive.shortest_ping_accepted_ms)),
        (
            "Age at which the server asks the client to reconnect (GOAWAY)",
            format_duration(keepalive.connection_age_ms),
        ),
        ("Shutdown grace for calls in flight", format_duration(spec.system.policies.shutdown.grace_ms)),
    ]
    return format_table(("Setting", "Value"), rows)
