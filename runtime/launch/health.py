"""Health and call rate of the processes of a deployment."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Callable, Iterable
from urllib.error import URLError

from runtime.launch.errors import NotHealthy
from runtime.launch.planning.plan import LOOPBACK, ProcessPlan
from runtime.launch.process import NodeProcess
from scripts.healthcheck import fetch_status, is_success, parse_http_target, probe

_CALLS = "charter_calls_total{"
_PATIENCE = 1.0
_PAUSE = 0.05


async def is_healthy(process: NodeProcess) -> bool:
    """Whether a process runs, has logged that it is ready and passes its node's healthcheck."""
    if not process.running or not process.has_logged_ready():
        return False
    if (check := process.plan.healthcheck) is None:
        return True
    place, deadline = parse_http_target(check.target), time.monotonic() + check.timeout_ms / 1000
    try:
        if check.mode == "http":
            status = await asyncio.to_thread(fetch_status, *place, deadline)
            return is_success(status) and process.running
        await asyncio.to_thread(probe, *place[:2], deadline)
    except OSError:
        return False
    return process.running


async def find_unhealthy(processes: Iterable[NodeProcess]) -> list[NodeProcess]:
    """Find the processes that are not healthy now."""
    listed = list(processes)
    answers = await asyncio.gather(*(is_healthy(each) for each in listed))
    return [each for each, healthy in zip(listed, answers, strict=True) if not healthy]


async def wait_until_healthy(left: list[NodeProcess], patience: float, report: Callable[[str], None]) -> None:
    """Wait until all are healthy; raises NotHealthy with the last lines of those that are not in time."""
    try:
        async with asyncio.timeout(patience):
            while left:
                before, left = left, await find_unhealthy(left)
                for process in before:
                    if process not in left:
                        report(f"{process.name}: healthy")
                await asyncio.sleep(_PAUSE if left else 0)
    except TimeoutError:
        names = ", ".join(each.name for each in left)
        lines = "\n".join(f"  {each.name}: {line}" for each in left for line in each.last_lines(3))
        raise NotHealthy(f"Not healthy after {patience:g} s: {names}.\n{lines}") from None


class CallRate:
    """Calls a second of one process, from its metrics."""

    def __init__(self, process: NodeProcess) -> None:
        self._process = process
        self._seen: tuple[float, float] | None = None

    async def sample(self) -> float | None:
        """Return the rate since the last sample; None where it is not known yet."""
        page = _metrics_url(self._process.plan)
        if page is None or not self._process.running:
            self._seen = None
            return None
        try:
            total = await asyncio.to_thread(_read_call_count, page)
        except (OSError, URLError, ValueError):
            self._seen = None
            return None
        now, before = time.monotonic(), self._seen
        self._seen = (now, total)
        if before is None or now <= before[0]:
            return None
        return max(0.0, (total - before[1]) / (now - before[0]))


def _metrics_url(plan: ProcessPlan) -> str | None:
    if plan.metrics_port is not None:
        return f"http://{LOOPBACK}:{plan.metrics_port}/metrics"
    return f"{plan.url}/metrics" if plan.url is not None and plan.url.startswith("http:") else None


def _read_call_count(page: str) -> float:
    with urllib.request.urlopen(page, timeout=_PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(_CALLS))
