"""The queue for WASI jobs beside a queue that somebody wrote by hand."""
