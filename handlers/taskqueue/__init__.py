"""The handlers of the taskqueue."""
