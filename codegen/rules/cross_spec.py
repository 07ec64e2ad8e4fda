"""The rule between specs: no two may claim the same name, proto file or proto package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.diagnostics import Diagnostic, Place
from codegen.rules.complaint import Complaint
from codegen.source.spec import Spec

CROSS_SPEC_COMPLAINTS = (
    Complaint(
        "E811",
        "Two specs have the same name, the same proto file or the same proto package.",
        wrong="# in two specs\nprotos: {public: {file: api.proto, package: api.v1}}",
        right="protos: {public: {file: locker_api.proto, package: locker.v1}}",
    ),
)


def find_clashes(specs: Sequence[Spec]) -> Iterator[Diagnostic]:
    """Find the names, files and packages that an earlier spec has claimed already."""
    claimed: dict[tuple[str, str], str] = {}
    for spec in specs:
        for kind, name, place in _iter_claims(spec):
            other = claimed.setdefault((kind, name), spec.folder)
            if other != spec.folder:
                message = f"The {kind} '{name}' is that of {other} already."
                yield Diagnostic(place, "E811", message, "Give it a name that no other spec uses.")


def _iter_claims(spec: Spec) -> Iterator[tuple[str, str, Place]]:
    yield "name", spec.name, spec.place("system", "name")
    for key, proto in spec.system.protos.items():
        yield "proto file", proto.file, spec.place("system", "protos", key, "file")
        yield "proto package", proto.package, spec.place("system", "protos", key, "package")
