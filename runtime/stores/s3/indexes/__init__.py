"""Index objects of a bucket, and their repair."""
