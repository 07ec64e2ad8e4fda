"""The commands of `qo`."""
