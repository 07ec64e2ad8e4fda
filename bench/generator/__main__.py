"""One client process: `python -m bench.generator` connects to a target, then sends load after load.

The protocol is lines of JSON. Standard input has the target, and then an order with a start time for each
load; standard output has the ticks and the outcome of each load.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

from bench.generator.arrivals import generate_arrivals, seed_random, shuffle_kinds
from bench.generator.loops import Recorder, run_closed_loop, run_open_loop
from bench.generator.traffic import Tally, User, touch_nodes
from bench.workload import Load
from runtime.client import Client, connect

TICK = 0.5


def main() -> None:
    """Serve orders until standard input ends."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_orders(json.loads(sys.stdin.readline())))


async def _serve_orders(target: dict[str, Any]) -> None:
    async with connect(target["system"], target["addresses"], ca_file=target["ca_file"]) as client:
        await touch_nodes(client)
        _send_message({"connected": True})
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            load = Load.model_validate(order["load"])
            _send_message(await _run(client, load, order["index"], order["share"], order["start"]))


async def _run(client: Client, load: Load, index: int, share: float, start: float) -> dict[str, Any]:
    """Send a load from `start` on the monotonic clock; the time before the window is the warm-up."""
    clock = time.monotonic
    begin, end = start + load.warm_up_s, start + load.warm_up_s + load.run_s
    recorder, tally = Recorder(clock, begin, end), Tally(clock)
    tally.count_within(begin, end)
    await asyncio.sleep(max(0.0, start - clock()))
    used = asyncio.create_task(_measure_cpu_s(begin, end, clock))
    ticks = asyncio.create_task(_report_ticks(recorder, round(load.run_s / TICK)))
    if load.loop == "closed":
        await run_closed_loop(
            recorder, [_create_user(client, load, tally, index, each) for each in range(int(share))], end
        )
    else:
        user, kinds = _create_user(client, load, tally, index, 0)
        seconds = load.warm_up_s + load.run_s
        times = (
            start + each for each in generate_arrivals(share, seconds, seed_random(load, "arrivals", index))
        )
        await run_open_loop(recorder, user, kinds, times)
    await ticks
    return {
        "latencies": {kind: each.encode() for kind, each in recorder.latencies.items()},
        "answered": recorder.answered,
        "failures": recorder.failures,
        "lag": recorder.lag.encode(),
        "observed": tally.observed.encode(),
        "keyed": tally.keyed,
        "cpu_s": await used,
    }


def _create_user(client: Client, load: Load, tally: Tally, index: int, number: int) -> tuple[User, Any]:
    source = seed_random(load, f"user {number}", index)
    return User(client, load, f"{index}.{number}", source, tally), shuffle_kinds(load.mix, source)


async def _measure_cpu_s(begin: float, end: float, clock: Callable[[], float]) -> float:
    """Measure the CPU time of this process within the window."""
    await asyncio.sleep(max(0.0, begin - clock()))
    before = time.process_time()
    await asyncio.sleep(max(0.0, end - clock()))
    return time.process_time() - before


async def _report_ticks(recorder: Recorder, ticks: int) -> None:
    """Report the results since the last tick, at times that are the same in every process."""
    for count in range(1, ticks + 1):
        await asyncio.sleep(max(0.0, recorder.start + count * TICK - recorder.clock()))
        calls, recorder.recent_calls = recorder.recent_calls, 0
        _send_message({"tick": count, "calls": calls, "times": recorder.recent.encode_and_reset()})


def _send_message(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
