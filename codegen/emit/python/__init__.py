"""The Python modules of a system: messages, guard tables, typed clients, settings."""
