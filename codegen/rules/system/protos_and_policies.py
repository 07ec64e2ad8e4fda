"""Rules of system.yaml about protos, policies and the page."""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter

from codegen.rules.lookup import get_fields
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec, type_ref


@rule(
    "E801",
    "A proto imports one that does not exist.",
    wrong="internal: {file: internal.proto, package: tasks.internal, imports: [publik]}",
    right="internal: {file: internal.proto, package: tasks.internal, imports: [public]}",
    spreads=True,
)
def check_imports_exist(spec: Spec) -> Iterator[Finding]:
    for name, proto in spec.system.protos.items():
        for index, imported in enumerate(proto.imports):
            place = spec.place("system", "protos", name, "imports", index)
            others = [other for other in spec.system.protos if other != name]
            yield from report_unknown(spec, place, f"The proto '{name}' imports", imported, others)


@rule(
    "E802",
    "Protos import each other in a circle.",
    wrong="public: {imports: [internal]}\ninternal: {imports: [public]}",
    right="public: {}\ninternal: {imports: [public]}",
    spreads=True,
)
def check_import_cycles(spec: Spec) -> Iterator[Finding]:
    protos = spec.system.protos
    reported: set[str] = set()
    for name in protos:
        cycle = _find_import_cycle(spec, name)
        if cycle and reported.isdisjoint(cycle):
            reported.update(cycle)
            index = protos[name].imports.index(cycle[0])
            place = spec.place("system", "protos", name, "imports", index)
            message = f"The proto '{name}' imports itself by way of {' -> '.join([name, *cycle])}."
            yield Finding(place, message, "Move what both need into a proto that imports neither.")


def _find_import_cycle(spec: Spec, start: str) -> list[str]:
    """Find the shortest cycle of imports from a proto to itself, without its start; empty if none."""
    paths = [[start]]
    seen: set[str] = set()
    for path in paths:
        proto = spec.system.protos.get(path[-1])
        for imported in proto.imports if proto else ():
            if imported == start and len(path) > 1:
                return [*path[1:], start]
            if imported not in seen:
                seen.add(imported)
                paths.append([*path, imported])
    return []


@rule(
    "E803",
    "Two protos are written to the same file.",
    wrong="public: {file: tasks.proto}\ninternal: {file: tasks.proto}",
    right="public: {file: tasks.proto}\ninternal: {file: tasks_internal.proto}",
)
def check_files_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for name, proto in spec.system.protos.items():
        if other := first.get(proto.file):
            place = spec.place("system", "protos", name, "file")
            message = f"The proto '{name}' is written to '{proto.file}', and so is '{other}'."
            yield Finding(place, message, "Give each a file of its own.")
        first.setdefault(proto.file, name)


@rule(
    "E804",
    "What is kept is bounded by something that is no variable with a number.",
    wrong="job_records: {bound: MAX_JOBS, unit: records, of: terminal, evicts: oldest}",
    right="job_records: {bound: MAX_RETAINED_JOBS, unit: records, of: terminal, evicts: oldest}",
)
def check_retention_bounds(spec: Spec) -> Iterator[Finding]:
    variables = spec.environment.variables
    for name, retention in spec.system.policies.retention.items():
        place = spec.place("system", "policies", "retention", name, "bound")
        numbers = [each for each, row in variables.items() if row.type == "int"]
        if retention.bound not in variables:
            yield from report_unknown(spec, place, f"'{name}' is bounded by", retention.bound, numbers)
        elif retention.bound not in numbers:
            kind = variables[retention.bound].type
            message = f"'{name}' is bounded by '{retention.bound}', which is of type {kind}."
            yield Finding(place, message, "Bound it by a variable of type int.")


@rule(
    "E805",
    "A log field is neither a field of a request nor an argument of a condition.",
    wrong="log_fields: [jobid]",
    right="log_fields: [job_id]",
    needs=("types", "services", "errors"),
)
def check_log_fields(spec: Spec) -> Iterator[Finding]:
    known = {field for row in spec.methods.values() for field in get_fields(spec, row.request) or ()}
    for condition in spec.errors.conditions.values():
        known |= set(list_arguments(condition.message or ""))
    for index, name in enumerate(spec.system.policies.log_fields):
        place = spec.place("system", "policies", "log_fields", index)
        yield from report_unknown(
            spec, place, "Log lines carry", name, known, "which is no field of a request or a condition"
        )


def list_arguments(message: str) -> list[str]:
    """List the names in the braces of a message template; none if it is no template."""
    try:
        return [name for _, name, _, _ in Formatter().parse(message) if name]
    except ValueError:
        return []


@rule(
    "E806",
    "A policy contradicts itself.",
    wrong="offset: {default_size: 500, max_size: 200, max_token: 99, max_token_digits: 2}",
    right="offset: {default_size: 50, max_size: 200, max_token: 99, max_token_digits: 2}",
)
def check_policies(spec: Spec) -> Iterator[Finding]:
    policies = spec.system.policies
    for name, retry in policies.retry.items():
        place = spec.place("system", "policies", "retry", name, key=True)
        if name == "never":
            yield Finding(
                place, "A retry profile is called 'never', which means no retry.", "Choose another name."
            )
        if retry.initial_ms > retry.max_ms:
            message = f"The first wait of '{name}' is {retry.initial_ms} ms, above max_ms {retry.max_ms}."
            yield Finding(
                spec.place("system", "policies", "retry", name, "initial_ms"), message, "Swap them."
            )
    for name, page in policies.pagination.items():
        path = ("policies", "pagination", name)
        if page.default_size > page.max_size:
            message = f"The default page of '{name}' is {page.default_size}, above max_size {page.max_size}."
            yield Finding(spec.place("system", *path, "default_size"), message, "Swap them.")
        if len(str(page.max_token)) > page.max_token_digits:
            message = f"The token {page.max_token} of '{name}' has more than {page.max_token_digits} digits."
            hint = f"Allow {len(str(page.max_token))} digits."
            yield Finding(spec.place("system", *path, "max_token_digits"), message, hint)
    keepalive = policies.keepalive
    if keepalive.ping_every_ms < keepalive.shortest_ping_accepted_ms:
        place = spec.place("system", "policies", "keepalive", "ping_every_ms")
        accepted = keepalive.shortest_ping_accepted_ms
        message = (
            f"Clients ping every {keepalive.ping_every_ms} ms, and servers accept no less than {accepted} ms."
        )
        yield Finding(place, message, "Ping less often or accept more pings; a server hangs up on the rest.")


@rule(
    "E807",
    "A proto imports one of which it uses nothing.",
    wrong="public: {file: public.proto, package: tasks, imports: [internal]}",
    right="public: {file: public.proto, package: tasks}",
    severity="warning",
    needs=("system", "types", "services"),
)
def check_imports_used(spec: Spec) -> Iterator[Finding]:
    used: dict[str, set[str]] = {name: set() for name in spec.system.protos}
    for proto, types in spec.types.root.items():
        for message in types.messages.values():
            used.setdefault(proto, set()).update(
                type_ref(field.type).name for field in message.fields.values()
            )
    for row in spec.methods.values():
        used.setdefault(row.service.proto, set()).update((row.request, row.response))
    for name, proto_row in spec.system.protos.items():
        homes = {spec.proto_of.get(each) for each in used[name]}
        for index, imported in enumerate(proto_row.imports):
            if imported not in homes:
                place = spec.place("system", "protos", name, "imports", index)
                yield Finding(
                    place, f"The proto '{name}' uses nothing of '{imported}'.", "Remove the import."
                )


@rule(
    "E808",
    "A page acts as no principal, shows no entity, or watches an entity without heartbeats.",
    wrong="page: {principal: visitr}",
    right="page: {principal: visitor}",
    needs=("system", "callers", "lifecycle", "types", "environment"),
    spreads=True,
)
def check_page(spec: Spec) -> Iterator[Finding]:
    if (page := spec.system.page) is None:
        return
    place = spec.place("system", "page", "principal")
    lack = "who is no principal"
    yield from report_unknown(spec, place, "The page acts as", page.principal, spec.callers.principals, lack)
    in_buckets = {name: row for name, row in spec.lifecycle.entities.items() if row.in_s3}
    if page.principal in spec.services.components:
        message = f"The page acts as {page.principal}, which is a component."
        yield Finding(place, message, "Name a principal of its own.")
    elif not in_buckets:
        key = spec.place("system", "page", key=True)
        yield Finding(key, "The page shows nothing: no entity is in a bucket.", "Remove 'page'.")
    elif watched := page.watches:
        here = ("page", "watches")
        entity, lack = spec.place("system", *here, "entity"), "which is in no bucket"
        yield from report_unknown(spec, entity, "The page watches", watched.entity, in_buckets, lack)
        record = (
            get_fields(spec, in_buckets[watched.entity].record) or {}
            if watched.entity in in_buckets
            else None
        )
        if record is not None and (watched.by not in record or record[watched.by].type != "timestamp"):
            times = [name for name, row in record.items() if row.type == "timestamp"]
            by, lack = spec.place("system", *here, "by"), "which is no time of its record"
            yield from report_unknown(
                spec, by, f"The page watches a {watched.entity} by", watched.by, times, lack
            )
        row = spec.environment.variables.get(watched.silent)
        if row is None or row.type not in ("int", "number") or row.default is None:
            numbers = [
                name
                for name, each in spec.environment.variables.items()
                if each.type in ("int", "number") and each.default is not None
            ]
            silent, lack = spec.place("system", *here, "silent"), "which is no number with a default"
            yield from report_unknown(spec, silent, "The page waits for", watched.silent, numbers, lack)
