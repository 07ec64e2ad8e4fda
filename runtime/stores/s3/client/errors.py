"""Failures of an object store, by what each means for the caller."""

from __future__ import annotations


class ObjectError(Exception):
    """Base of all failures; the message is one line with the cause and, where it helps, what to do."""


class NotMatched(ObjectError):
    """The precondition of a write failed: another write was first, perhaps an earlier try of this process."""


class Gone(NotMatched):
    """There is no object where one was to be replaced."""


class Unsure(ObjectError):
    """The outcome of a conditional write is unknown. It is never repeated."""


class Away(ObjectError):
    """The store is unreachable or temporarily unable to answer; all retries have failed."""


class Refused(ObjectError):
    """A permanent failure that no retry mends: wrong key, no such bucket, not allowed."""
