"""Claims in PostgreSQL: leases, where to look for one, and how they are settled."""
