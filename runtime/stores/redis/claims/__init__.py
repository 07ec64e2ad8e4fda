"""Claims in Redis: leases, who can take which, and wake-ups of those who wait."""
