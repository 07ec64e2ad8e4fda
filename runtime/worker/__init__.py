"""The lease worker: claims entities, runs them, renews their leases, and settles them."""
