"""Nodes find each other on a network by multicast DNS: one announces what it serves, another looks for it."""

from __future__ import annotations

from runtime.node.discovery.announcer import Announcer, offers_of
from runtime.node.discovery.browser import find, find_one
from runtime.node.discovery.choice import NotLocated, SeveralDeployments, Sought, locate
from runtime.node.discovery.records import Offer

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
