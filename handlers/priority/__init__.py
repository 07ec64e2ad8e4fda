"""The business logic of the priority queue: its manager, its producers and its worker."""
