"""Call policy: the deadline of an attempt, retry and backoff. The same for every channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from runtime.call.conditions import CallFailed, Failure
from runtime.call.context import Answering, Call
from runtime.model.system import CallMode, Method, RetryProfile
from runtime.observe import log as events
from runtime.world import World

Attempt = Callable[[Any, Call, float], Awaitable[Any]]
"""One attempt, with its timeout in seconds."""


def apply_call_policy(
    method: Method, attempt: Attempt, principal: str, fixed_mode: CallMode | None = None
) -> Callable[[Any, Call], Answering[Any]]:
    """Make a function that calls a method under its call policy.

    An attempt gets the method's deadline or what is left of the inbound one, whichever is less. A mode with
    a fresh deadline has the method's deadline in all, whatever is left of the inbound one.
    """
    policy = method.policy
    seconds = policy.deadline_ms / 1000
    names_caller = method.names_caller
    name = str(method)
    service = name.partition(".")[0]

    async def invoke(request: Any, call: Call) -> Any:
        # The call mode of a permission is a rule, so no handler can choose another.
        world, mode = call.world, fixed_mode or call.mode
        if names_caller is not None:
            setattr(request, names_caller, principal)
        now = world.monotonic()
        limit = call.deadline if mode is None or not mode.fresh_deadline else now + seconds
        tried = 0
        while True:
            patience = seconds if limit is None or now + seconds <= limit else limit - now
            if patience <= 0:
                raise CallFailed("DEADLINE_EXCEEDED", f"no time is left to call {name}", service)
            tried += 1
            try:
                return await attempt(request, call, patience)
            except Failure as failure:
                profile = policy.retry
                if profile is None or failure.grpc not in profile.codes:
                    raise
                if tried >= _attempts(method, mode, request):
                    raise
                delay = backoff_seconds(profile, tried, world)
                if limit is not None and world.monotonic() + delay >= limit:
                    raise
                # The line names the retried call, also where background work makes it.
                call.tell(
                    events.CALL_RETRIED,
                    f"{name} failed: {failure.message}",
                    method=name,
                    attempt=tried,
                    grpc_code=failure.grpc,
                    **{each: getattr(request, each) or None for each in method.log_fields},
                )
            await world.sleep(delay)
            now = world.monotonic()

    return invoke


def backoff_seconds(profile: RetryProfile, tried: int, world: World) -> float:
    """Return the seconds to wait after so many attempts."""
    bound = min(profile.initial_ms * profile.multiplier ** (tried - 1), profile.max_ms) / 1000
    return world.uniform(0.0, bound) if profile.full_jitter else bound


def _attempts(method: Method, mode: CallMode | None, request: Any) -> int:
    if mode is not None and mode.attempts is not None:
        return mode.attempts
    policy = method.policy
    if policy.retry is None or (policy.retry_when_set and not getattr(request, policy.retry_when_set)):
        return 1
    return policy.retry.attempts
