"""Layouts: how each engine names and lays out entities, as the generator writes it."""
