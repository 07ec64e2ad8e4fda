"""Cost of each guard: our drain on scratch databases, each of which lacks one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.peers import ours
from bench.peers.findings import JobRate, MedianRate, RunSizes
from bench.peers.measurement import PostgresBench

WHOLE = "with all guards"
WITHOUT: Mapping[str, str] = {
    "without the edge and actor trigger": "without-edges",
    "without fencing": "without-fencing",
    "without history": "without-history",
    "without all three": "without-all",
}
"""By name, the script that removes the guard. Fencing within the statements themselves stays, and its cost is
not in these numbers."""
_SLOTS = ours.SLOTS[200]


async def measure_without_guards(
    bench: PostgresBench, sizes: RunSizes, print_line: Callable[[str], None]
) -> dict[str, MedianRate]:
    """Measure drains with and without guards in turns, so that a drift of the machine affects all."""
    queues = {WHOLE: await ours.create_queue(bench.server, "guards")}
    for name, script in WITHOUT.items():
        queues[name] = await ours.create_queue(bench.server, script)
        queues[name].database.run_script(script)
    rates_by_name: dict[str, list[JobRate]] = {}
    for _ in range(sizes.rounds):
        for name, queue in queues.items():
            queue.prepare(aged=False)
            rate = await bench.drain(queue, _SLOTS, sizes.drain, sizes.drain_at_most_s)
            rates_by_name.setdefault(name, []).append(rate)
            print_line(f"  drain {name}: {rate.per_s:,.0f}/s, {rate.cpu_us:,.0f} µs of CPU a job")
    return {name: MedianRate.from_rounds(rates) for name, rates in rates_by_name.items()}
