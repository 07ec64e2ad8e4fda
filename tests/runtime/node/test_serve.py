"""What a node does around its serving."""

from __future__ import annotations

import gc

from runtime.serve import freeze_startup_objects


def test_the_collector_spares_what_is_there_when_a_node_is_ready() -> None:
    """Nothing of what a node is made of is looked through again; what comes later still is."""
    thresholds = gc.get_threshold()
    try:
        freeze_startup_objects()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > thresholds[0]
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
