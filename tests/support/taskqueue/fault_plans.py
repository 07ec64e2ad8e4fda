"""Plans for the simulated network that more than one test needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from google.protobuf.message import Message

from generated.taskqueue.messages import RemoveJobIfPresentResponse
from runtime.simulation import Exchange, Fault, Plan


def fail_calls(*names: str, fault: Fault = Fault.BEFORE, principal: str | None = None) -> Plan:
    """Make some methods fail whenever they are called, or whenever one principal calls them."""

    def plan(exchange: Exchange) -> Fault | None:
        return fault if exchange.name in names and principal in (None, exchange.principal) else None

    return plan


def once(name: str, fate: Fault | Message | None, *, principal: str = "coordinator", times: int = 1) -> Plan:
    """Replace the answers of the first calls of one method by one principal."""
    remaining = [fate] * times

    def plan(exchange: Exchange) -> Fault | Message | None:
        return (
            remaining.pop()
            if remaining and (exchange.principal, exchange.name) == (principal, name)
            else None
        )

    return plan


def notify_at(at: str) -> tuple[asyncio.Event, Plan]:
    """An event that is set when a method is about to be called, and the plan that sets it."""
    event = asyncio.Event()

    def plan(exchange: Exchange) -> None:
        if exchange.name == at:
            event.set()

    return event, plan


def before(name: str, act: Callable[[], object]) -> Plan:
    """Act at the moment when a method is called for the first time."""
    acts = [act]

    def plan(exchange: Exchange) -> None:
        if exchange.name == name and acts:
            acts.pop()()

    return plan


def not_in_queue(exchange: Exchange) -> RemoveJobIfPresentResponse | None:
    """Have the queue answer that it does not have the job."""
    return RemoveJobIfPresentResponse(removed=False) if exchange.name == "RemoveJobIfPresent" else None
