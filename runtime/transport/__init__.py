"""How calls reach a node and leave it."""
