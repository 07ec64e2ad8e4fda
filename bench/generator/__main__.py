"""One client process: `python -m bench.generator` is told where to connect, then sends load after load.

It speaks lines of JSON. In come the target, and for each load the order and the start; out go ticks and the
end of each load.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

from bench.generator.arrivals import chance, deal, poisson
from bench.generator.loops import Recorder, arriving, closed
from bench.generator.traffic import Tally, User, touch_nodes
from bench.workload import Load
from runtime.client import Client, connect

TICK = 0.5


def main() -> None:
    """Goes on until standard input ends."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_obey(json.loads(sys.stdin.readline())))


async def _obey(target: dict[str, Any]) -> None:
    async with connect(target["system"], target["addresses"], ca_file=target["ca_file"]) as client:
        await touch_nodes(client)
        _say({"connected": True})
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            load = Load.model_validate(order["load"])
            _say(await _run(client, load, order["index"], order["share"], order["start"]))


async def _run(client: Client, load: Load, index: int, share: float, start: float) -> dict[str, Any]:
    """Sends from `start` on the system's monotonic clock; what comes before the window is the warm-up."""
    clock = time.monotonic
    begin, end = start + load.warm_up_s, start + load.warm_up_s + load.run_s
    recorder, tally = Recorder(clock, begin, end), Tally(clock)
    tally.count_within(begin, end)
    await asyncio.sleep(max(0.0, start - clock()))
    used = asyncio.create_task(_processor_seconds(begin, end, clock))
    ticks = asyncio.create_task(_tick(recorder, round(load.run_s / TICK)))
    if load.loop == "closed":
        await closed(recorder, [_user(client, load, tally, index, each) for each in range(int(share))], end)
    else:
        user, kinds = _user(client, load, tally, index, 0)
        seconds = load.warm_up_s + load.run_s
        times = (start + each for each in poisson(share, seconds, chance(load, "arrivals", index)))
        await arriving(recorder, user, kinds, times)
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


def _user(client: Client, load: Load, tally: Tally, index: int, number: int) -> tuple[User, Any]:
    source = chance(load, f"user {number}", index)
    return User(client, load, f"{index}.{number}", source, tally), deal(load.mix, source)


async def _processor_seconds(begin: float, end: float, clock: Callable[[], float]) -> float:
    """What this process used of a processor within the window."""
    await asyncio.sleep(max(0.0, begin - clock()))
    before = time.process_time()
    await asyncio.sleep(max(0.0, end - clock()))
    return time.process_time() - before


async def _tick(recorder: Recorder, ticks: int) -> None:
    """Tells of the window so far, at times that are the same in every process."""
    for count in range(1, ticks + 1):
        await asyncio.sleep(max(0.0, recorder.start + count * TICK - recorder.clock()))
        calls, recorder.recent_calls = recorder.recent_calls, 0
        _say({"tick": count, "calls": calls, "times": recorder.recent.take()})


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
