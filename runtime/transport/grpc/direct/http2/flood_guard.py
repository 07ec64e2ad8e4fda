"""Flood protection: a bound on frames that are allowed one by one and harmful in masses."""

from __future__ import annotations

import asyncio

from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError
from runtime.transport.grpc.direct.http2.streams import Limits

_SUSPICIOUS_FRAMES_PER_SECOND = 4_000
"""Frames that make no progress, as empty DATA and RST_STREAM: an honest client sends a few for each call."""
_MAX_PING_STRIKES = 2


class FloodGuard:
    """Counter of suspicious frames and of pings, which ends a connection with ENHANCE_YOUR_CALM."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self._now = loop.time
        self._shortest_ping_s = limits.shortest_ping_s
        self._suspicious = 0
        self._counted_since = self._now()
        self._pinged_at = -limits.shortest_ping_s
        self._ping_strikes = 0

    def count_suspicious(self, weight: int = 1) -> None:
        """Count a frame that makes no progress; `weight` is for one that is more work than others."""
        self._suspicious += weight
        if self._suspicious > _SUSPICIOUS_FRAMES_PER_SECOND:
            now = self._now()
            if now - self._counted_since < 1.0:
                raise Http2ConnectionError(
                    ErrorCode.ENHANCE_YOUR_CALM, "too many frames that make no progress"
                )
            self._suspicious, self._counted_since = 0, now

    def count_ping(self, has_sent: bool) -> None:
        """Count a PING of the peer; `has_sent` is whether it was sent headers or data since its last one."""
        now = self._now()
        if has_sent:
            self._ping_strikes = 0
        else:
            self.count_suspicious()
            if now - self._pinged_at < self._shortest_ping_s:
                self._ping_strikes += 1
                if self._ping_strikes > _MAX_PING_STRIKES:
                    # gRPC clients know this debug data, and ping less often after it.
                    raise Http2ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings")
        self._pinged_at = now
