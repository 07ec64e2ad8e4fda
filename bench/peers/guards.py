"""What each guard costs: our drain on scratch databases, each of which lacks one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.peers import ours
from bench.peers.findings import Middle, Rate, Sizes
from bench.peers.measure import Bench

WHOLE = "with all guards"
WITHOUT: Mapping[str, str] = {
    "without the edge and actor trigger": "without-edges",
    "without fencing": "without-fencing",
    "without history": "without-history",
    "without all three": "without-all",
}
"""By name, the script that takes it away. What fences within the statements themselves stays, and what that
costs is not in these numbers."""
_SLOTS = ours.SLOTS[200]


async def without_guards(bench: Bench, sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Middle]:
    """Drains in turns, so that a drift of the machine hits all."""
    queues = {WHOLE: await ours.queue(bench.server, "guards")}
    for name, script in WITHOUT.items():
        queues[name] = await ours.queue(bench.server, script)
        queues[name].database.run(script)
    found: dict[str, list[Rate]] = {}
    for _ in range(sizes.rounds):
        for name, queue in queues.items():
            queue.prepare(aged=False)
            rate = await bench.drain(queue, _SLOTS, sizes.drain, sizes.drain_at_most_s)
            found.setdefault(name, []).append(rate)
            tell(f"  drain {name}: {rate.per_s:,.0f}/s, {rate.cpu_us:,.0f} µs of CPU a job")
    return {name: Middle.of(rates) for name, rates in found.items()}
