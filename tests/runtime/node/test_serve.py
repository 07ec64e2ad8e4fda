"""The process around a node that serves."""

from __future__ import annotations

import gc

from runtime.serve import freeze_startup_objects

_DEFAULT_THRESHOLDS = (700, 10, 10)
"""Those of Python; the tests themselves run with others."""


def test_the_collector_skips_the_objects_of_a_ready_node() -> None:
    """Objects of the start are not traversed again; later ones are."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_DEFAULT_THRESHOLDS)
    try:
        freeze_startup_objects()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > _DEFAULT_THRESHOLDS[0]
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
