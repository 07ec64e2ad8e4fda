"""TLS context for clients of plain HTTP."""

from __future__ import annotations

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""An empty context. Without one, a client loads all authorities of the web, in 30 ms."""
