"""Errors of stores."""

from __future__ import annotations


class NoSuchEntity(Exception):
    """Nothing has this key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class GuardBreach(Exception):
    """A handler tried to change what only a transition may change. This is a fault in the handler."""


class Unstorable(ValueError):
    """A value that the store cannot hold, such as text with a NUL in it."""


class Busy(Exception):
    """Somebody else has the entity for a moment, which takes its lease from nobody."""


class StoreUnusable(Exception):
    """The store cannot be used until somebody does something about it; the message says what is wrong."""


class StoreAway(StoreUnusable):
    """It does not answer now. It may be starting, so whoever has the time asks again."""


class StoreNotSetUp(StoreUnusable):
    """It is there and has not been made ready for what is to be kept in it."""
