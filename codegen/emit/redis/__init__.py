"""Lua scripts for entities in Redis, and encoders of what they are given."""
