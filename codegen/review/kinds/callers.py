"""Differences of callers.yaml: principals, their proofs, and the caller matrix."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.callers import Permission
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    is_same,
    iter_added,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec


@kind("principal.added", "There is one more principal.", Verdict.COMPATIBLE)
def find_principal_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, row in iter_added(old.callers.principals, new.callers.principals):
        yield SpecChange(
            name, f"principal {name} is added, proven by {' or '.join(row.proof)}", _get_principal_path(name)
        )


@kind("principal.removed", "A principal is gone.", Verdict.BEHAVIOUR)
def find_principal_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.callers.principals, old.callers.principals):
        yield SpecChange(name, f"principal {name} is removed", _get_principal_path(name))


@kind("proof.added", "A principal can prove itself by one more proof.", Verdict.WIDENS)
def find_proof_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.callers.principals, new.callers.principals):
        for proof in list_gained(before.proof, after.proof):
            yield SpecChange(
                f"{name} {proof}", f"{name} gains the proof {proof}", (*_get_principal_path(name), "proof")
            )


@kind("proof.removed", "A principal can no longer use a proof.", Verdict.BEHAVIOUR)
def find_proof_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.callers.principals, new.callers.principals):
        for proof in list_gained(after.proof, before.proof):
            yield SpecChange(
                f"{name} {proof}", f"{name} loses the proof {proof}", (*_get_principal_path(name), "proof")
            )


@kind("principal.let_in", "An anonymous principal is let in on another condition.", Verdict.BEHAVIOUR)
def find_principal_let_in(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.callers.principals, new.callers.principals):
        if before.without_tokens != after.without_tokens:
            when = "only where no tokens are accepted" if after.without_tokens else "always"
            verdict = None if after.without_tokens else Verdict.WIDENS
            path = (*_get_principal_path(name), "without_tokens")
            yield SpecChange(name, f"{name} is let in {when}", path, verdict=verdict)


@kind("permission.added", "A principal may call one more method.", Verdict.WIDENS)
def find_permission_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, permission in iter_added(_map_permissions(old), _map_permissions(new)):
        principal, method = name.split(" ")
        yield SpecChange(
            name, f"{principal} gains {method}{_format_terms(permission)}", _get_permission_path(name)
        )


@kind("permission.removed", "A principal may no longer call a method.", Verdict.BEHAVIOUR)
def find_permission_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(_map_permissions(new), _map_permissions(old)):
        principal, method = name.split(" ")
        yield SpecChange(name, f"{principal} loses {method}", _get_permission_path(name))


@kind("permission.narrowed", "A permission has one more condition.", Verdict.BEHAVIOUR)
def find_permission_narrowed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(_map_permissions(old), _map_permissions(new)):
        for field, value in iter_added(before.only, after.only):
            text = f"{name.replace(' ', ' may call ')} only with {field} = {format_value(value)}"
            yield SpecChange(f"{name} {field}", text, (*_get_permission_path(name), "only", field))


@kind("permission.widened", "A permission has lost a condition.", Verdict.WIDENS)
def find_permission_widened(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(_map_permissions(old), _map_permissions(new)):
        for field, _ in iter_added(after.only, before.only):
            text = f"{name.replace(' ', ' may call ')} with any {field}"
            yield SpecChange(f"{name} {field}", text, (*_get_permission_path(name), "only", field))


@kind("permission.condition", "A condition of a permission asks for another value.", Verdict.WIDENS)
def find_permission_condition(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(_map_permissions(old), _map_permissions(new)):
        for field, was, now in iter_common(before.only, after.only):
            if not is_same(was, now):
                text = f"{name.replace(' ', ' may call ')} only with {field} {format_change(was, now)}"
                yield SpecChange(f"{name} {field}", text, (*_get_permission_path(name), "only", field))


@kind("permission.call", "A principal makes a call in another mode.", Verdict.BEHAVIOUR)
def find_permission_call(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(_map_permissions(old), _map_permissions(new)):
        if before.call != after.call:
            modes = format_change(before.call or "ordinary", after.call or "ordinary")
            yield SpecChange(
                name, f"{name.replace(' ', ' calls ')} in mode {modes}", (*_get_permission_path(name), "call")
            )


def _get_principal_path(name: str) -> Path:
    return ("callers", "principals", name)


def _map_permissions(spec: Spec) -> dict[str, Permission]:
    """Map the caller matrix by names such as `clerk DeskService.StoreParcel`."""
    return {f"{principal} {method}": row for (principal, method), row in spec.permissions.items()}


def _get_permission_path(name: str) -> Path:
    principal, _, ref = name.partition(" ")
    service, _, method = ref.partition(".")
    return ("callers", "may_call", principal, service, method)


def _format_terms(permission: Permission) -> str:
    terms = [f"only {field} = {format_value(value)}" for field, value in permission.only.items()]
    terms += [f"mode {permission.call}"] if permission.call else []
    return f" ({', '.join(terms)})" if terms else ""
