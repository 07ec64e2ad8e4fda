"""Log, metrics and traces of a process."""
