"""Schemas, guards and statements for entities and histories in PostgreSQL."""
