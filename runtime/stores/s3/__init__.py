"""Entities as objects of a bucket: the client, the bucket itself, and the store over both."""
