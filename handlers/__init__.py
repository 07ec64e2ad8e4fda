"""Hand-written business logic: a package for each system, a module for each component."""
