"""Benchmark of the object queue against bare requests to the same store: claims, rates, requests, idling."""
