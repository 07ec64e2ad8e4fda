"""Examples of Hypothesis that do not depend on the tests that ran before in the same process."""

from __future__ import annotations

from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants


def forget_code() -> None:
    """Draw no text and no number from the code of the modules that happen to be loaded.

    Which are loaded depends on the tests that a process has run, so the same test had other examples in the
    next run, even with a fixed seed. To read all of that code takes each process a second, too.
    """
    nothing = Constants()
    # No setting turns it off. A test looks whether the name is still there.
    setattr(providers, "_get_local_constants", lambda: nothing)  # noqa: B010
