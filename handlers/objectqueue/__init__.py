"""Hand-written logic of the object queue."""
