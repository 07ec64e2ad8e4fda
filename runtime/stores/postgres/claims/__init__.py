"""Claims and settlements of leases."""
