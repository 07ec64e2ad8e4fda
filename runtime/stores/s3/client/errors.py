"""What an object store may say instead of an answer, by what it means for the one who asked."""

from __future__ import annotations


class ObjectError(Exception):
    """Any of them; the message is one line that says what happened and, where it helps, what to do."""


class NotMatched(ObjectError):
    """The object is not as a write wants it: somebody was first, perhaps an own earlier try."""


class Gone(NotMatched):
    """There is no object where one was to be replaced."""


class Unsure(ObjectError):
    """Nothing tells whether a conditional write took place. It is never repeated."""


class Away(ObjectError):
    """The store does not answer, or only that it cannot at the moment; it was tried a few times."""


class Refused(ObjectError):
    """The store will not do it however often it is asked: wrong key, no such bucket, not allowed."""
