"""The business logic of the priority queue: accepting tasks, handing them out, and running them."""
