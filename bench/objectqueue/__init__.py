"""The object queue beside bare requests to the same store: claims, rates, requests, and what idling costs."""
