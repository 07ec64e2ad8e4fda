"""Rules of callers.yaml: principals, the caller matrix and its conditions."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.callers import Permission
from codegen.rules.lookup import find_misfit, get_request_fields
from codegen.rules.rule import Finding, report_unknown, report_unknown_method, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path

_NEEDED_ROLES = {
    "certificate": ("tls_certificate", "tls_key", "tls_authority"),
    "token": ("accepted_tokens",),
}


@rule(
    "E414",
    "A principal is admitted only without tokens, and needs a proof all the same, or there never are tokens.",
    wrong="passer_by: {proof: [token], without_tokens: true}",
    right="passer_by: {proof: [anonymous], without_tokens: true}",
    needs=("callers",),
)
def check_without_tokens(spec: Spec) -> Iterator[Finding]:
    proofs = {proof for row in spec.callers.principals.values() for proof in row.proof}
    for name, row in spec.callers.principals.items():
        if not row.without_tokens:
            continue
        place = spec.place("callers", "principals", name, "without_tokens", key=True)
        if row.proof != ("anonymous",):
            message = f"{name} is admitted without a proof where there are no tokens, and has one."
            yield Finding(place, message, "Say 'proof: [anonymous]', or remove 'without_tokens'.")
        elif "token" not in proofs:
            message = f"{name} is admitted where there are no tokens, and no principal ever has one."
            yield Finding(place, message, "Remove 'without_tokens'.")


@rule(
    "E401",
    "The caller matrix has someone who is no principal.",
    wrong="may_call:\n  gatewy: {}",
    right="may_call:\n  desk: {}",
    spreads=True,
)
def check_principals_exist(spec: Spec) -> Iterator[Finding]:
    for name in spec.callers.may_call:
        place = spec.place("callers", "may_call", name, key=True)
        yield from report_unknown(
            spec, place, "The matrix has a row for", name, spec.callers.principals, "who is no principal"
        )


@rule(
    "E402",
    "A permission names a service or method that does not exist.",
    wrong="desk:\n  QueueInternalService: [Enqueue]",
    right="desk:\n  QueueInternalService: [EnqueueJob]",
    spreads=True,
)
def check_permitted_methods_exist(spec: Spec) -> Iterator[Finding]:
    for principal, services in spec.callers.may_call.items():
        for service in services:
            if service not in spec.services.services:
                place = spec.place("callers", "may_call", principal, service, key=True)
                known = spec.services.services
                yield from report_unknown(
                    spec, place, f"{principal} may call", service, known, "which is no service"
                )
    for path, principal, ref, _ in _iter_permissions(spec):
        if ref.partition(".")[0] in spec.services.services:
            yield from report_unknown_method(spec, spec.place("callers", *path), f"{principal} may call", ref)


@rule(
    "E403",
    "A permission is given twice.",
    wrong=("desk:\n  ResultInternalService: [StoreResult, StoreResult: {only: {terminal_status: CANCELED}}]"),
    right="desk:\n  ResultInternalService: [StoreResult: {only: {terminal_status: CANCELED}}]",
)
def check_permissions_unique(spec: Spec) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for path, principal, ref, _ in _iter_permissions(spec):
        if (principal, ref) in seen:
            message = f"{principal} may call {ref} twice; only the last of them would count."
            yield Finding(spec.place("callers", *path), message, "Remove one of them.")
        seen.add((principal, ref))


@rule(
    "E404",
    "A permission depends on a field that the request does not have.",
    wrong="- StoreResult: {only: {status: CANCELED}}",
    right="- StoreResult: {only: {terminal_status: CANCELED}}",
)
def check_condition_fields_exist(spec: Spec) -> Iterator[Finding]:
    for path, _, ref, permission in _iter_permissions(spec):
        fields = get_request_fields(spec, ref)
        for name in permission.only if fields is not None else ():
            place = spec.place("callers", *path, "only", name, key=True)
            lack = f"which {spec.methods[ref].request} does not have"
            yield from report_unknown(
                spec, place, "The permission depends on the field", name, fields or {}, lack
            )


@rule(
    "E405",
    "A permission depends on a value that the field cannot have.",
    wrong="- StoreResult: {only: {terminal_status: CANCELLED}}",
    right="- StoreResult: {only: {terminal_status: CANCELED}}",
    spreads=True,
)
def check_condition_values(spec: Spec) -> Iterator[Finding]:
    for path, _, ref, permission in _iter_permissions(spec):
        fields = get_request_fields(spec, ref) or {}
        for name, value in permission.only.items():
            if name in fields and (wrong := find_misfit(spec, fields[name].type, value)):
                message = f"The permission depends on '{name}', but that {wrong.problem}."
                yield Finding(spec.place("callers", *path, "only", name), message, wrong.hint)


@rule(
    "E406",
    "A permission names a call mode that does not exist.",
    wrong="- EnqueueJob: {call: resque}",
    right="- EnqueueJob: {call: rescue}",
)
def check_call_modes_exist(spec: Spec) -> Iterator[Finding]:
    for path, principal, ref, permission in _iter_permissions(spec):
        if permission.call:
            place = spec.place("callers", *path, "call")
            subject = f"{principal} calls {ref} in the mode"
            yield from report_unknown(spec, place, subject, permission.call, spec.system.policies.calls)


@rule(
    "E408",
    "A principal is anonymous and proves itself as well. Who is anonymous proves nothing.",
    wrong="client: {proof: [anonymous, token]}",
    right="client: {proof: [anonymous]}",
)
def check_anonymous_has_no_proof(spec: Spec) -> Iterator[Finding]:
    for name, principal in spec.callers.principals.items():
        if "anonymous" in principal.proof and len(principal.proof) > 1:
            place = spec.place("callers", "principals", name, "proof")
            message = f"{name} is anonymous and proves itself as well."
            yield Finding(place, message, "Make two principals of it, or remove one of the proofs.")


@rule(
    "E409",
    "Two principals are anonymous, so they cannot be distinguished.",
    wrong="client: {proof: [anonymous]}\nguest: {proof: [anonymous]}",
    right="client: {proof: [anonymous]}\nguest: {proof: [token]}",
)
def check_one_anonymous(spec: Spec) -> Iterator[Finding]:
    anonymous = [name for name, row in spec.callers.principals.items() if "anonymous" in row.proof]
    for name in anonymous[1:]:
        place = spec.place("callers", "principals", name, "proof")
        message = f"{name} is anonymous, and so is {anonymous[0]}; they cannot be distinguished."
        yield Finding(place, message, "Let one of them prove itself, or make one principal of them.")


@rule(
    "E410",
    "A principal proves itself by something that no variable is for.",
    wrong="# no variable has the role accepted_tokens\nworker: {proof: [token]}",
    right="# ACCEPTED_TOKENS: {role: accepted_tokens, type: digests, …}\nworker: {proof: [token]}",
    needs=("environment",),
)
def check_proof_variables(spec: Spec) -> Iterator[Finding]:
    roles = {row.role for row in spec.environment.variables.values()}
    reported: set[str] = set()
    for name, principal in spec.callers.principals.items():
        for index, proof in enumerate(principal.proof):
            own = ("caller_token",) if proof == "token" and _has_upstreams(spec, name) else ()
            for role in (*_NEEDED_ROLES.get(proof, ()), *own):
                if role not in roles | reported:
                    reported.add(role)
                    place = spec.place("callers", "principals", name, "proof", index)
                    message = f"{name} proves itself by {proof}, but no variable has the role '{role}'."
                    yield Finding(place, message, f"Give 'role: {role}' to a variable in environment.yaml.")


@rule(
    "E411",
    "Someone who proves nothing may move an entity directly.",
    wrong="client:  # proof: [anonymous]\n  JobInternalService: [TransitionJobStatus]",
    right="vault:  # proof: [certificate]\n  JobInternalService: [TransitionJobStatus]",
    severity="warning",
)
def check_anonymous_drives_nothing(spec: Spec) -> Iterator[Finding]:
    for path, principal, ref, _ in _iter_permissions(spec):
        row, caller = spec.methods.get(ref), spec.callers.principals.get(principal)
        if row and row.method.drives and caller and "anonymous" in caller.proof:
            message = f"{principal} is anonymous and may move a {row.method.drives.entity} by {ref}."
            yield Finding(spec.place("callers", *path), message, "Let a component do it on its behalf.")


@rule(
    "E413",
    "A component is anonymous, so that anyone could pass for it.",
    wrong="vault: {proof: [anonymous]}  # a component",
    right="vault: {proof: [certificate, token]}",
)
def check_components_proven(spec: Spec) -> Iterator[Finding]:
    for name, principal in spec.callers.principals.items():
        if name in spec.services.components and principal.proof == ("anonymous",):
            place = spec.place("callers", "principals", name, "proof")
            message = f"{name} is a component and anonymous, so anyone could pass for it."
            yield Finding(place, message, "Let it prove itself by certificate or token.")


@rule(
    "E415",
    "Someone is known by what the store lets it do, and no entity is in a store that it uses itself.",
    wrong="principals: {client: {proof: [store]}}  # and no entity is in a bucket",
    right="principals: {client: {proof: [token]}}",
    needs=("callers", "lifecycle"),
)
def check_store_proof(spec: Spec) -> Iterator[Finding]:
    if any(row.in_s3 for row in spec.lifecycle.entities.values()):
        return
    for name, principal in spec.callers.principals.items():
        if "store" in principal.proof:
            place = spec.place("callers", "principals", name, "proof")
            message = f"{name} is known by what the store lets it do, and no entity is in a bucket."
            yield Finding(place, message, "Let it prove itself by certificate or token.")


def _has_upstreams(spec: Spec, component: str) -> bool:
    """Whether a node of the component calls another node, and so needs credentials of its own."""
    return any(component in node.hosts and node.upstreams for _, _, _, node in spec.nodes())


def _iter_permissions(spec: Spec) -> Iterator[tuple[Path, str, str, Permission]]:
    """Iterate over the entries of the matrix: path, principal, `Service.Method` and conditions."""
    for principal, services in spec.callers.may_call.items():
        for service, grants in services.items():
            for index, grant in enumerate(grants):
                path = ("may_call", principal, service, index)
                if isinstance(grant, str):
                    yield path, principal, f"{service}.{grant}", Permission()
                else:
                    for method, permission in grant.items():
                        yield (*path, method), principal, f"{service}.{method}", permission
