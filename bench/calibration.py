"""What one call costs here: the inputs of the capacity model, measured apart from what it predicts."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.designs.results import Record
from bench.sides import bare, engine, measured
from runtime.certs import make_certificates
from runtime.systems import load_system

CALLS = 1200
IN_FLIGHT = 4
ROUNDS = 3


class Costs(Record):
    """Processor microseconds; medians of a few rounds."""

    bare_server_us: float
    bare_caller_us: float
    server_us: float
    """Taking a call in, guarding it and answering, where the handler does next to nothing."""
    caller_us: float
    """Making a call with a generated client."""
    local_us: float
    """The same between two components of one process, both sides together."""
    inside_us: Mapping[str, float]
    """A public method with all that it causes, in one process and without a network."""

    @property
    def rpc_us(self) -> float:
        """One call between two nodes, both sides together."""
        return self.server_us + self.caller_us

    @property
    def bare_rpc_us(self) -> float:
        return self.bare_server_us + self.bare_caller_us


def calibrate(*, tls: bool, rounds: int = ROUNDS) -> Costs:
    """Measures an echo of the engine, one without it, and handlers without a network."""
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        certificates = Path(folder) if tls else None
        if certificates is not None:
            make_certificates(load_system("taskqueue"), "microservices", certificates)
        with bare("enqueue", certificates) as plain, engine("enqueue", certificates) as guarded:
            rows = [
                (
                    measured(plain, "enqueue", certificates, CALLS, IN_FLIGHT),
                    measured(guarded, "enqueue", certificates, CALLS, IN_FLIGHT, typed=True),
                )
                for _ in range(rounds)
            ]
    within = [_inside() for _ in range(rounds)]
    return Costs(
        bare_server_us=_middle(row[0]["cpu_us_per_call"] for row in rows),
        bare_caller_us=_middle(row[0]["client_cpu_us_per_call"] for row in rows),
        server_us=_middle(row[1]["cpu_us_per_call"] for row in rows),
        caller_us=_middle(row[1]["client_cpu_us_per_call"] for row in rows),
        local_us=_middle(each["local"] for each in within),
        inside_us={name: _middle(each[name] for each in within) for name in within[0]},
    )


def _inside() -> dict[str, float]:
    done = subprocess.run([sys.executable, "-m", "bench.inside"], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _middle(values: Iterable[float]) -> float:
    return round(statistics.median(values), 1)
