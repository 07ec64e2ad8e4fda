"""Schemas, guards and statements for entities in a SQLite file."""
