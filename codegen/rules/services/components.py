"""Rules of services.yaml about components and services."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.rules.lookup import format_list, iter_methods
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import MethodRow, Spec


@rule(
    "E301",
    "A service is in a proto that does not exist.",
    wrong="QueueInternalService: {proto: intern}",
    right="QueueInternalService: {proto: internal}",
    spreads=True,
)
def check_protos_exist(spec: Spec) -> Iterator[Finding]:
    for name, service in spec.services.services.items():
        place = spec.place("services", "services", name, "proto")
        yield from report_unknown(spec, place, f"{name} is in the proto", service.proto, spec.system.protos)


@rule(
    "E302",
    "A service is offered by no component.",
    wrong="components:\n  queue: {serves: [], owns: the queue}",
    right="components:\n  queue: {serves: [QueueInternalService], owns: the queue}",
    needs=("services",),
    spreads=True,
)
def check_services_served(spec: Spec) -> Iterator[Finding]:
    for name in spec.services.services:
        if name not in spec.server_of:
            place = spec.place("services", "services", name, key=True)
            yield Finding(place, f"No component serves {name}.", "Add it to what a component serves.")


@rule(
    "E303",
    "A service is offered by two components.",
    wrong="queue: {serves: [QueueInternalService]}\njob: {serves: [QueueInternalService]}",
    right="queue: {serves: [QueueInternalService]}\njob: {serves: [JobInternalService]}",
    spreads=True,
)
def check_services_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for component, row in spec.services.components.items():
        for index, service in enumerate(row.serves):
            if (other := first.setdefault(service, component)) != component:
                place = spec.place("services", "components", component, "serves", index)
                message = f"{component} serves {service}, and so does {other}."
                yield Finding(place, message, "Leave it to one of them.")


@rule(
    "E304",
    "A component serves something that is no service.",
    wrong="queue: {serves: [QueueService], owns: the queue}",
    right="queue: {serves: [QueueInternalService], owns: the queue}",
    spreads=True,
)
def check_services_exist(spec: Spec) -> Iterator[Finding]:
    for component, row in spec.services.components.items():
        for index, service in enumerate(row.serves):
            place = spec.place("services", "components", component, "serves", index)
            yield from report_unknown(spec, place, f"{component} serves", service, spec.services.services)


@rule(
    "E305",
    "The request or the response of a method is no message.",
    wrong="CancelJob: {request: CancelRequest}",
    right="CancelJob: {request: CancelJobRequest}",
    spreads=True,
)
def check_messages_exist(spec: Spec) -> Iterator[Finding]:
    for row, path in iter_methods(spec):
        lacks = [name for name in (row.request, row.response) if name not in {*spec.messages, *spec.dropped}]
        if len(lacks) == 2 and not row.method.request and not row.method.response:
            place = spec.place("services", *path, key=True)
            message = f"{row.name} has neither '{row.request}' nor '{row.response}' in types.yaml."
            yield Finding(place, message, "Define them, or name the messages that it takes and gives.")
            continue
        for key, name in (("request", row.request), ("response", row.response)):
            is_explicit = getattr(row.method, key) is not None
            place = spec.place("services", *path, *([key] if is_explicit else []), key=not is_explicit)
            lack = "which types.yaml does not define"
            yield from report_unknown(spec, place, f"The {key} of {row.name} is", name, spec.messages, lack)


@rule(
    "E320",
    "A component is no principal, so its calls have no identity.",
    wrong="components: {queue: {owns: the queue}}\nprincipals: {desk: {proof: [token]}}",
    right=(
        "components: {queue: {owns: the queue}}\n"
        "principals: {desk: {proof: [token]}, queue: {proof: [token]}}"
    ),
    needs=("callers",),
    spreads=True,
)
def check_component_principals(spec: Spec) -> Iterator[Finding]:
    for name in spec.services.components:
        if name not in spec.callers.principals:
            place = spec.place("services", "components", name, key=True)
            message = f"The component '{name}' is no principal."
            yield Finding(place, message, f"Add '{name}: {{proof: […]}}' to the principals in callers.yaml.")


@rule(
    "E321",
    "Two services of one component have a method of the same name, but its handler has room for one.",
    wrong="queue: {serves: [QueueService, AdminService]}  # both have Drain",
    right="queue: {serves: [QueueService, AdminService]}  # Drain and DrainAll",
)
def check_handler_methods_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[tuple[str, str], MethodRow] = {}
    for row, path in iter_methods(spec):
        other = first.setdefault((row.component, row.name.casefold()), row)
        if row.component and other is not row:
            names = format_list([other.ref, row.ref])
            message = f"{row.component} serves {names}, which would be one method of its handler."
            yield Finding(spec.place("services", *path, key=True), message, "Rename one of them.")
