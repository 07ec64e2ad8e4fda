"""The handlers of the studio."""
