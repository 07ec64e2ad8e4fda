"""The business logic of the object queue: its queue, monitor and worker, and the command `qo`."""
