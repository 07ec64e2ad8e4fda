"""Nodes find each other on a network by multicast DNS: one announces what it serves, another looks for it."""

from __future__ import annotations

from runtime.discovery.announcer import Announcer, offers_of
from runtime.discovery.browser import find, find_one
from runtime.discovery.choice import NotLocated, SeveralDeployments, Sought, locate
from runtime.discovery.records import Offer

__all__ = [
    "Announcer",
    "NotLocated",
    "Offer",
    "SeveralDeployments",
    "Sought",
    "find",
    "find_one",
    "locate",
    "offers_of",
]
