"""Rules of callers.yaml: principals, the caller matrix and its conditions."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.rules.rule import Finding, rule, unknown
from codegen.spec import Spec


@rule(
    "E402",
    "A permission names a service or method that does not exist.",
    wrong="gateway:\n  QueueInternalService: [Enqueue]",
    right="gateway:\n  QueueInternalService: [EnqueueJob]",
)
def unknown_method(spec: Spec) -> Iterator[Finding]:
    for principal, services in spec.callers.may_call.items():
        for service_name, grants in services.items():
            path = ("may_call", principal, service_name)
            service = spec.services.services.get(service_name)
            if service is None:
                place = spec.place("callers", *path, key=True)
                yield from unknown(spec, place, f"{principal} may call", service_name, spec.services.services)
                continue
            for index, grant in enumerate(grants):
                name = grant if isinstance(grant, str) else next(iter(grant))
                if name not in service.methods:
                    place = spec.place("callers", *path, index)
                    yield from unknown(
                        spec, place, f"{principal} may call {service_name}.", name, service.methods
                    )
