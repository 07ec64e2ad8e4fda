"""Stores of entities: the contract, the store in memory, and a folder for each other engine."""
