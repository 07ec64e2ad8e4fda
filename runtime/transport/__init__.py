"""Transports: how calls enter and leave a node."""
