"""What clients of plain HTTP share."""

from __future__ import annotations

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody, and need not. A client that is handed none loads all authorities of the web, in 30 ms."""
