"""Claims in a bucket: the searches for claimable entities, and their leases."""
