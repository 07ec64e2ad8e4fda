"""Emitters of the Python modules of a system: messages, guard tables, typed clients, settings."""
