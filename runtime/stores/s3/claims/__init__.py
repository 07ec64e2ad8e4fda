"""Claims in a bucket: leases, and where a worker looks for what is free."""
