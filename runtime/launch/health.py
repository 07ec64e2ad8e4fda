"""How the processes of a deployment do: their own healthchecks, and how many calls they answer."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Callable, Iterable
from urllib.error import URLError

from runtime.launch.errors import NotHealthy
from runtime.launch.planning.plan import LOOPBACK, Planned
from runtime.launch.process import NodeProcess
from scripts.healthcheck import fetch_status, is_success, parse_place, probe

_CALLS = "charter_calls_total{"
_PATIENCE = 1.0
_PAUSE = 0.05


async def is_healthy(process: NodeProcess) -> bool:
    """Whether a process runs, has said that it is ready and passes its node's own healthcheck."""
    if not process.running or not process.said_ready():
        return False
    if (check := process.planned.healthcheck) is None:
        return True
    place, deadline = parse_place(check.target), time.monotonic() + check.timeout_ms / 1000
    try:
        if check.mode == "http":
            status = await asyncio.to_thread(fetch_status, *place, deadline)
            return is_success(status) and process.running
        await asyncio.to_thread(probe, *place[:2], deadline)
    except OSError:
        return False
    return process.running


async def unhealthy(processes: Iterable[NodeProcess]) -> list[NodeProcess]:
    """Those that are not healthy now."""
    listed = list(processes)
    answers = await asyncio.gather(*(is_healthy(each) for each in listed))
    return [each for each, healthy in zip(listed, answers, strict=True) if not healthy]


async def until_healthy(left: list[NodeProcess], patience: float, tell: Callable[[str], None]) -> None:
    """Returns when all of them are healthy; raises with the last words of those that are not in time."""
    try:
        async with asyncio.timeout(patience):
            while left:
                before, left = left, await unhealthy(left)
                for process in before:
                    if process not in left:
                        tell(f"{process.name}: healthy")
                await asyncio.sleep(_PAUSE if left else 0)
    except TimeoutError:
        names = ", ".join(each.name for each in left)
        lines = "\n".join(f"  {each.name}: {line}" for each in left for line in each.last_lines(3))
        raise NotHealthy(f"Not healthy after {patience:g} s: {names}.\n{lines}") from None


class CallRate:
    """Calls a second of one process, from the counters that it offers."""

    def __init__(self, process: NodeProcess) -> None:
        self._process = process
        self._seen: tuple[float, float] | None = None

    async def sample(self) -> float | None:
        """The rate since the last sample; None where nothing is known yet."""
        page = _metrics_page(self._process.planned)
        if page is None or not self._process.running:
            self._seen = None
            return None
        try:
            total = await asyncio.to_thread(_calls_answered, page)
        except (OSError, URLError, ValueError):
            self._seen = None
            return None
        now, before = time.monotonic(), self._seen
        self._seen = (now, total)
        if before is None or now <= before[0]:
            return None
        return max(0.0, (total - before[1]) / (now - before[0]))


def _metrics_page(planned: Planned) -> str | None:
    if planned.metrics_port is not None:
        return f"http://{LOOPBACK}:{planned.metrics_port}/metrics"
    return f"{planned.url}/metrics" if planned.url is not None and planned.url.startswith("http:") else None


def _calls_answered(page: str) -> float:
    with urllib.request.urlopen(page, timeout=_PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(_CALLS))
