"""Calibration: the CPU cost of one call, measured apart from the loads that the capacity model predicts."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.designs.results import ResultRecord
from bench.engine.servers import measure_calls, start_bare, start_crowd, start_engine
from runtime.certs import make_certificates
from runtime.node.systems import load_system

CALLS = 1200
IN_FLIGHT = 4
CROWD = 6
"""Nodes of either design."""


class Costs(ResultRecord):
    """CPU microseconds of each kind of call."""

    bare_server_us: float
    bare_caller_us: float
    server_us: float
    """Receiving a call, guarding it and answering, with a handler that does next to nothing."""
    caller_us: float
    """Making a call with a generated client."""
    local_us: float
    """A call between two components of one process, both sides."""
    inside_us: Mapping[str, float]
    """A public method with all calls that it causes, in one process and without a network."""
    crowding: float
    """The cost of a call with six nodes on the cores of this machine, over its cost with one node."""

    @property
    def rpc_us(self) -> float:
        """One call between two nodes, both sides."""
        return self.server_us + self.caller_us

    @property
    def bare_rpc_us(self) -> float:
        return self.bare_server_us + self.bare_caller_us


def calibrate(*, tls: bool) -> Costs:
    """Measure an echo with the engine, an echo with bare gRPC, and the handlers without a network."""
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        certificates = Path(folder) if tls else None
        if certificates is not None:
            make_certificates(load_system("taskqueue"), "microservices", certificates)
        with start_bare("enqueue", certificates) as side:
            plain = measure_calls(side, "enqueue", certificates, CALLS, IN_FLIGHT)
        with start_engine("enqueue", certificates) as side:
            guarded = measure_calls(side, "enqueue", certificates, CALLS, IN_FLIGHT, typed=True)
            alone = measure_calls(side, "enqueue", certificates, CALLS, CROWD + 2)
        with start_crowd(certificates, CROWD) as side:
            crowded = measure_calls(side, "enqueue", certificates, CALLS, CROWD + 2)
    in_process = _measure_in_process()
    return Costs(
        bare_server_us=round(plain["cpu_us_per_call"], 1),
        bare_caller_us=round(plain["client_cpu_us_per_call"], 1),
        server_us=round(guarded["cpu_us_per_call"], 1),
        caller_us=round(guarded["client_cpu_us_per_call"], 1),
        local_us=in_process["local"],
        inside_us=in_process,
        crowding=round(max(1.0, _sum_sides(crowded) / _sum_sides(alone)), 3),
    )


def take_median(several: Sequence[Costs]) -> Costs:
    """Take the median of each number over several calibrations."""
    plain = {
        name: statistics.median(getattr(each, name) for each in several)
        for name in Costs.model_fields
        if name != "inside_us"
    }
    names = several[0].inside_us
    return Costs(
        **plain,
        inside_us={name: statistics.median(each.inside_us[name] for each in several) for name in names},
    )


def _sum_sides(ends: Mapping[str, float]) -> float:
    return ends["cpu_us_per_call"] + ends["client_cpu_us_per_call"]


def _measure_in_process() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.engine.in_process"], capture_output=True, text=True, check=True
    )
    costs: dict[str, float] = json.loads(done.stdout)
    return costs
