"""Differences of callers.yaml: who there is, how each is proven, and who may call what."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.callers import Permission
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, gained, kept, same, shown, turn
from codegen.source.spec import Spec


@kind("principal.added", "There is one more principal.", Verdict.COMPATIBLE)
def principal_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, row in added(old.callers.principals, new.callers.principals):
        yield Found(name, f"principal {name} is added, proven by {' or '.join(row.proof)}", _principal(name))


@kind("principal.removed", "A principal is gone.", Verdict.BEHAVIOUR)
def principal_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.callers.principals, old.callers.principals):
        yield Found(name, f"principal {name} is removed", _principal(name))


@kind("proof.added", "A principal can prove itself in one more way.", Verdict.WIDENS)
def proof_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.callers.principals, new.callers.principals):
        for proof in gained(before.proof, after.proof):
            yield Found(f"{name} {proof}", f"{name} gains the proof {proof}", (*_principal(name), "proof"))


@kind("proof.removed", "A principal can no longer prove itself in a way.", Verdict.BEHAVIOUR)
def proof_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.callers.principals, new.callers.principals):
        for proof in gained(after.proof, before.proof):
            yield Found(f"{name} {proof}", f"{name} loses the proof {proof}", (*_principal(name), "proof"))


@kind("principal.let_in", "Whoever has no proof is let in on another condition.", Verdict.BEHAVIOUR)
def principal_let_in(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.callers.principals, new.callers.principals):
        if before.without_tokens != after.without_tokens:
            when = "only where no tokens are accepted" if after.without_tokens else "always"
            verdict = None if after.without_tokens else Verdict.WIDENS
            path = (*_principal(name), "without_tokens")
            yield Found(name, f"{name} is let in {when}", path, verdict=verdict)


@kind("permission.added", "A principal may call one more method.", Verdict.WIDENS)
def permission_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, permission in added(_permissions(old), _permissions(new)):
        principal, method = name.split(" ")
        yield Found(name, f"{principal} gains {method}{_terms(permission)}", _permission(name))


@kind("permission.removed", "A principal may no longer call a method.", Verdict.BEHAVIOUR)
def permission_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(_permissions(new), _permissions(old)):
        principal, method = name.split(" ")
        yield Found(name, f"{principal} loses {method}", _permission(name))


@kind("permission.narrowed", "A permission has one more condition.", Verdict.BEHAVIOUR)
def permission_narrowed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(_permissions(old), _permissions(new)):
        for field, value in added(before.only, after.only):
            text = f"{name.replace(' ', ' may call ')} only with {field} = {shown(value)}"
            yield Found(f"{name} {field}", text, (*_permission(name), "only", field))


@kind("permission.widened", "A permission has lost a condition.", Verdict.WIDENS)
def permission_widened(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(_permissions(old), _permissions(new)):
        for field, _ in added(after.only, before.only):
            text = f"{name.replace(' ', ' may call ')} with any {field}"
            yield Found(f"{name} {field}", text, (*_permission(name), "only", field))


@kind("permission.condition", "A condition of a permission asks for another value.", Verdict.WIDENS)
def permission_condition(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(_permissions(old), _permissions(new)):
        for field, was, now in kept(before.only, after.only):
            if not same(was, now):
                text = f"{name.replace(' ', ' may call ')} only with {field} {turn(was, now)}"
                yield Found(f"{name} {field}", text, (*_permission(name), "only", field))


@kind("permission.call", "A principal makes a call in another mode.", Verdict.BEHAVIOUR)
def permission_call(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(_permissions(old), _permissions(new)):
        if before.call != after.call:
            modes = turn(before.call or "ordinary", after.call or "ordinary")
            yield Found(name, f"{name.replace(' ', ' calls ')} in mode {modes}", (*_permission(name), "call"))


def _principal(name: str) -> Path:
    return ("callers", "principals", name)


def _permissions(spec: Spec) -> dict[str, Permission]:
    """The caller matrix under names such as `clerk DeskService.StoreParcel`."""
    return {f"{principal} {method}": row for (principal, method), row in spec.permissions.items()}


def _permission(name: str) -> Path:
    principal, _, ref = name.partition(" ")
    service, _, method = ref.partition(".")
    return ("callers", "may_call", principal, service, method)


def _terms(permission: Permission) -> str:
    terms = [f"only {field} = {shown(value)}" for field, value in permission.only.items()]
    terms += [f"mode {permission.call}"] if permission.call else []
    return f" ({', '.join(terms)})" if terms else ""
