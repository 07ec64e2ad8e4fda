"""One process of a deployment: its settings, its handlers, and what it is assembled from."""
