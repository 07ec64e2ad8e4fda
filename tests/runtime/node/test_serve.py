"""The process around a node that serves."""

from __future__ import annotations

import gc

from runtime.serve import freeze_startup_objects


def test_the_collector_skips_the_objects_of_a_ready_node() -> None:
    """Objects of the start are not traversed again; later ones are."""
    thresholds = gc.get_threshold()
    try:
        freeze_startup_objects()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > thresholds[0]
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
