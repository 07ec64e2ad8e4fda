"""Discovery by multicast DNS (DNS-SD): nodes announce their services, and browse for those of others."""

from __future__ import annotations

from runtime.node.discovery.announcer import Announcer, make_offers
from runtime.node.discovery.browser import find, find_one
from runtime.node.discovery.choice import NotLocated, SearchTarget, SeveralDeployments, locate
from runtime.node.discovery.records import Offer

__all__ = [
    "Announcer",
    "NotLocated",
    "Offer",
    "SearchTarget",
    "SeveralDeployments",
    "find",
    "find_one",
    "locate",
    "make_offers",
]
