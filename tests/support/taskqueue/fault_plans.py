"""Plans for the simulated network that more than one test needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from google.protobuf.message import Message

from runtime.simulation import Exchange, Fault, Plan


def failing(*names: str, fault: Fault = Fault.BEFORE, principal: str | None = None) -> Plan:
    """Some methods fail whenever they are called, or whenever one principal calls them."""

    def plan(exchange: Exchange) -> Fault | None:
        return fault if exchange.name in names and principal in (None, exchange.principal) else None

    return plan


def once(name: str, fate: Fault | Message | None, *, principal: str = "coordinator", times: int = 1) -> Plan:
    """The first calls of one method by one principal go another way."""
    left = [fate] * times

    def plan(exchange: Exchange) -> Fault | Message | None:
        return left.pop() if left and (exchange.principal, exchange.name) == (principal, name) else None

    return plan


def ring(at: str) -> tuple[asyncio.Event, Plan]:
    """A bell that rings when a method is about to be called."""
    bell = asyncio.Event()

    def plan(exchange: Exchange) -> None:
        if exchange.name == at:
            bell.set()

    return bell, plan


def before(name: str, act: Callable[[], object]) -> Plan:
    """Something happens at the moment when a method is called for the first time."""
    acts = [act]

    def plan(exchange: Exchange) -> None:
        if exchange.name == name and acts:
            acts.pop()()

    return plan
